//! The tests of dt files and romfiles.

use proptest::test_runner::{Config as ProptestConfig, RngSeed};

#[macro_use]
#[path = "../../../tests/support/own_process.rs"]
mod own_process;
#[path = "../../../tests/support/seed.rs"]
mod seed;

/// The configuration of the random tests.
fn random() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(seed::seed()), ..ProptestConfig::default() }
}

mod cut_off;
mod file;
mod fork;
mod format;
mod object;
mod romfile;

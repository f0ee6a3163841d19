//! `log`: a level and a logger for the whole program.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};
use log::kv::{Error, Key, Value, VisitSource};
use log::{LevelFilter, Metadata, Record};
use std::sync::Once;

/// `log::trace!` with key-values, the only way to pass arguments without formatting them.
#[derive(Clone, Copy, Debug)]
pub struct Log;

impl Site for Log {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        log::trace!(a, b, c; "small");
    }
}

/// A logger that adds up the values and stores nothing.
struct Sink;

impl log::Log for Sink {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut sum = Sum(0);
        // The visitor returns no errors.
        if record.key_values().visit(&mut sum).is_ok() {
            tally::add(0, 0, sum.0);
        }
    }

    fn flush(&self) {}
}

struct Sum(i64);

impl<'kvs> VisitSource<'kvs> for Sum {
    fn visit_pair(&mut self, _: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        self.0 = self.0.wrapping_add(value.to_i64().unwrap_or_default());
        Ok(())
    }
}

const COUNT: Arm = || {
    static INIT: Once = Once::new();
    INIT.call_once(|| log::set_logger(&Sink).expect("no other logger is set"));
    log::set_max_level(LevelFilter::Trace);
    Ok(Armed::until(|| log::set_max_level(LevelFilter::Off)))
};

const OFF: Variant = Variant {
    name: "log",
    mode: Mode::Off,
    does: "log::trace! with key-values, the level OFF",
    kernels: Compiled::of::<Log>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
};

/// Off and on.
pub const VARIANTS: &[Variant] = &[
    OFF,
    Variant {
        name: "log-visit",
        mode: Mode::On,
        counts_losses: true,
        does: "a logger that visits the key-values, counts and sums up; formats nothing",
        arm: COUNT,
        ..OFF
    },
];

//! The libraries, each with its event, its states, and what they do.

pub mod dial9;
pub mod fastrace;
pub mod flag;
pub mod leak;
pub mod log;
#[cfg(feature = "lttng")]
pub mod lttng;
#[cfg(not(feature = "lttng"))]
#[path = "peer/lttng_absent.rs"]
pub mod lttng;
pub mod none;
pub mod ours;
pub mod probe;
pub mod record;
pub mod static_keys;
pub mod tracing;
mod uprobe;
pub mod usdt;

use crate::variant::Variant;

/// Every variant, in the order of the tables. The first is what the others are compared with, the second says how far apart two
/// measurements of the same thing are. `static-keys` is last because switching it on replaces pages of the program, after which
/// the kernel sets no breakpoints in them.
pub const VARIANTS: &[&[Variant]] = &[
    none::VARIANTS,
    ours::VARIANTS,
    record::VARIANTS,
    flag::VARIANTS,
    leak::VARIANTS,
    probe::VARIANTS,
    usdt::VARIANTS,
    lttng::VARIANTS,
    tracing::VARIANTS,
    log::VARIANTS,
    fastrace::VARIANTS,
    dial9::VARIANTS,
    static_keys::VARIANTS,
];

/// Every variant, in the order of the tables.
pub fn all() -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().copied().flatten()
}

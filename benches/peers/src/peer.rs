//! The libraries, each with its event and its states.

pub mod babeltrace;
pub mod dial9;
pub mod dial9_encode;
pub mod fastrace;
pub mod flag;
pub mod floor;
pub mod leak;
pub mod log;
#[cfg(feature = "lttng")]
pub mod lttng;
#[cfg(not(feature = "lttng"))]
#[path = "peer/lttng_absent.rs"]
pub mod lttng;
#[cfg(feature = "lttng")]
pub mod lttng_session;
pub mod none;
pub mod ours;
pub mod ours_session;
mod plain_ring;
pub mod probe;
pub mod record;
pub mod static_keys;
pub mod ticklog;
pub mod tracing;
pub mod tracing_record;
mod uprobe;
pub mod usdt;
mod workload;

use crate::variant::Variant;
use std::env;
use std::path::{Path, PathBuf};

/// All variants, in the order of the tables. The first is the base of all comparisons; the second is the same code again, and shows
/// the noise. `static-keys` is last, because it replaces pages of the program when it is switched on, after which the operating
/// system sets no breakpoints in them.
pub const VARIANTS: &[&[Variant]] = &[
    none::VARIANTS,
    ours::VARIANTS,
    floor::VARIANTS,
    record::VARIANTS,
    ours_session::VARIANTS,
    flag::VARIANTS,
    leak::VARIANTS,
    probe::VARIANTS,
    usdt::VARIANTS,
    lttng::VARIANTS,
    #[cfg(feature = "lttng")]
    lttng_session::VARIANTS,
    tracing::VARIANTS,
    tracing_record::VARIANTS,
    log::VARIANTS,
    fastrace::VARIANTS,
    dial9::VARIANTS,
    dial9_encode::VARIANTS,
    ticklog::VARIANTS,
    static_keys::VARIANTS,
];

/// All variants, in the order of the tables.
pub fn all() -> impl Iterator<Item = &'static Variant> {
    VARIANTS.iter().copied().flatten()
}

/// The directory for files: in memory where possible, because the cost of a disk is not measured here.
fn memory_directory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_path_buf() } else { env::temp_dir() }
}

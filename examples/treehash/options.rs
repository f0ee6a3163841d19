//! The command line.

use clap::Parser;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Hashes every regular file of a directory tree and records itself doing it
///
/// Every file is hashed with BLAKE3 by one of several threads. Each step is a tracepoint of the provider `treehash`; a
/// session records them into a CTF trace: exactly one `treehash:file_hashed` for each regular file hashed, and one
/// `treehash:error` for each problem.
///
/// Symbolic links are not followed, unless `--follow` is given: each is one `treehash:link_skipped`; a link that leads in a
/// circle is also a `treehash:error` of the kind `loop`. Unreadable entries are counted and do not end the walk.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "treehash",
    after_help = "\
Examples:
  cargo run -p tracepoint-treehash --example treehash
  cargo run -p tracepoint-treehash --example treehash -- --out /tmp/trace ~/src
  cargo run -p tracepoint-treehash --example treehash -- --dt /tmp/newest.dt --dt-slots 8 ~/src
  cargo run -p tracepoint-treehash --example treehash -- --off ~/src
  cargo run -p tracepoint-treehash --example treehash -- --off --repeat 1000 ~/src   # and from outside: tracectl record -e 'treehash:*'

Memory of the recording: one ring of 4 MiB for each thread, and for two more: 40 MiB for 8 threads.

Exit codes:
  0  the tree was walked; problems with files in it are reported and counted
  1  the tree cannot be read, or the trace cannot be written
  2  the command line is wrong"
)]
pub struct Options {
    /// The directory [default: the Rust toolchain's, as printed by `rustc --print sysroot`]
    #[arg(value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The trace: a directory that is empty or does not exist [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the trace to a circular file of a fixed size instead, which must not exist
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    pub dt: Option<PathBuf>,
    /// Number of packets of 512 KiB in the circular file, which keeps the newest ones
    #[arg(long, value_name = "N", default_value_t = 64, requires = "dt")]
    pub dt_slots: u32,
    /// Number of threads that hash [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Follow symbolic links
    #[arg(long)]
    pub follow: bool,
    /// Record nothing: the same work with all tracepoints off, for comparison
    #[arg(long, conflicts_with_all = ["out", "dt"])]
    pub off: bool,
    /// Number of times to hash the tree, one after the other
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroU64,
    /// Report in one JSON object
    #[arg(long)]
    pub json: bool,
}

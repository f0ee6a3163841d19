//! What stands for `tracectl query scheduler`, `executor` and `--cluster` in a program without the feature `cluster`: each says how to get it.

use std::ffi::OsString;
use std::future::{Ready, ready};
use std::sync::Arc;

use clap::Args;
use tracepoint_query::distributed::Runner;

use crate::VerbResult;

const MISSING: &str = "this program was built without the feature `cluster`, with which several machines run a query: install it with \
                       `cargo install --path query/program --features cluster`";

/// A process of a cluster, which this program cannot run
#[derive(Debug, Args)]
pub(crate) struct Process {
    /// Not read: the feature is missing with any arguments
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    arguments: Vec<OsString>,
}

pub(crate) type Scheduler = Process;
pub(crate) type Executor = Process;

impl Process {
    #[expect(clippy::unused_self, reason = "the same call as that of a process that runs")]
    pub(crate) fn run(&self) -> VerbResult {
        Err(MISSING.into())
    }
}

/// Fails, because no cluster can be used.
pub(crate) fn connect(_scheduler: &str, _tasks: usize) -> Ready<Result<Arc<dyn Runner>, &'static str>> {
    ready(Err(MISSING))
}

//! One run, from the options to the report.

use crate::excerpt::Excerpt;
use crate::options::Options;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::report::Report;
use crate::walk::{self, Work};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Instant;
use tracepoint::Agent;

/// Runs the program with the options of the command line.
///
/// # Errors
///
/// If the root cannot be read, or the trace or the report cannot be written.
pub fn run(options: &Options) -> anyhow::Result<()> {
    // Without an agent the program still runs, but cannot be controlled.
    let _agent = Agent::start().inspect_err(|error| eprintln!("treehash: {error}")).ok();
    let root = options.root.clone().map_or_else(sysroot, Ok)?;
    fs::read_dir(&root)
        .with_context(|| format!("cannot read {}; name a directory that you may read", root.display()))?;
    let threads = options.threads.map_or_else(processors, usize::from);
    let work = Work { root, threads, follow: options.follow };

    let recording = (!options.off).then(|| Recording::start(options, threads)).transpose()?;
    let begin = Instant::now();
    let mut totals = walk::hash_tree(&work, Progress::new(true));
    for _ in 1..options.repeat.get() {
        totals.add(&walk::hash_tree(&work, Progress::new(true)));
    }
    let elapsed = begin.elapsed();
    let recorded = recording.map(Recording::stop).transpose()?;
    let report = Report { work, totals, elapsed, recorded };

    let mut out = io::stdout().lock();
    if options.json {
        report.write_json(&mut out)?;
    } else {
        let excerpt = report.recorded.as_ref().map(|recorded| Excerpt::of(&recorded.out)).transpose()?;
        report.write_text(&mut out, excerpt.as_ref())?;
    }
    Ok(out.flush()?)
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A large real tree that exists wherever this program was built.
fn sysroot() -> anyhow::Result<PathBuf> {
    const MEND: &str = "name the directory to hash: treehash DIR";
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .with_context(|| format!("there is no `rustc` to tell where the Rust toolchain is; {MEND}"))?;
    if !output.status.success() {
        bail!("`rustc --print sysroot` failed; {MEND}");
    }
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    Ok(PathBuf::from(OsString::from_vec(path.to_vec())))
}

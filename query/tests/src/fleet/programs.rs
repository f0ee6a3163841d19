//! The programs of the chain, run as child processes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};

use super::Outcome;

/// Timeout for operations that normally take a moment.
const DEADLINE: Duration = Duration::from_secs(180);

/// A program that is killed on drop. Its standard output and standard error go to two files.
#[derive(Debug)]
pub struct ChildProgram {
    child: Child,
    output: PathBuf,
}

impl ChildProgram {
    /// Starts a program. Its standard output is appended to `output`, its standard error to the same name with `.errors`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command, output: &Path) -> Outcome<Self> {
        let open = |path: &Path| File::options().create(true).append(true).open(path);
        let errors = open(&output.with_extension("errors"))?;
        let command = command.stdout(open(output)?).stderr(errors).stdin(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", command.get_program().display()))?;
        Ok(Self { child, output: output.to_owned() })
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end. Returns the exit status, and the processor time in seconds.
    ///
    /// # Errors
    /// If it does not end.
    pub fn interrupt(&mut self) -> Outcome<(ExitStatus, f64)> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        self.wait()
    }

    /// Kills it.
    ///
    /// # Errors
    /// If it does not end.
    pub fn kill(&mut self) -> Outcome {
        self.child.kill()?;
        self.wait()?;
        Ok(())
    }

    /// Waits for the end. Returns the exit status, and the processor time in seconds of the program and of the children it has waited for.
    ///
    /// # Errors
    /// If it does not end within three minutes.
    pub fn wait(&mut self) -> Outcome<(ExitStatus, f64)> {
        let before = children_seconds()?;
        let told = format!("{} ends", self.output.display());
        let status = wait_for(&told, || Ok(self.child.try_wait()?))?;
        Ok((status, children_seconds()? - before))
    }

    /// The standard output so far.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn said(&self) -> Outcome<String> {
        Ok(fs::read_to_string(&self.output)?)
    }

    /// The standard error so far.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn messages(&self) -> Outcome<String> {
        Ok(fs::read_to_string(self.output.with_extension("errors"))?)
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processor time of all child processes that this one has waited for.
fn children_seconds() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, rest) = stat.rsplit_once(')').ok_or("no name")?;
    // `cutime` and `cstime`.
    let times = rest.split_whitespace().skip(13).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()? as f64 / clock_ticks_per_second() as f64)
}

/// Polls until `answer` returns a value.
///
/// # Errors
/// If there is no value within three minutes.
pub(crate) fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let began = Instant::now();
    loop {
        if let Some(answer) = answer()? {
            return Ok(answer);
        }
        if began.elapsed() > DEADLINE {
            return Err(format!("waited in vain until {what}").into());
        }
        sleep(Duration::from_millis(20));
    }
}

/// Path of this checkout's `tracectl`, built in the same profile as this program, with NATS support.
///
/// # Errors
/// If it has not been built, with the command that builds it.
pub fn tracectl() -> Outcome<PathBuf> {
    let (profile, option) = if cfg!(debug_assertions) { ("debug", "") } else { ("release", " --release") };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(profile).join("tracectl");
    if path.exists() {
        return Ok(path.canonicalize()?);
    }
    Err(format!(
        "there is no {}: run `cargo build -p tracectl --features nats{option}` in the root of the repository",
        path.display()
    )
    .into())
}

//! The two processes of the helper.

use super::arguments::CoreArguments;
use super::config::Config;
use super::dumper::Dumper;
use super::pattern;
use crate::trigger::CoreDump;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::UNIX_EPOCH;

/// Maximum time in seconds that the core image, and thereby the process, is held back until its directory in `/proc` has been read.
const READY_TIMEOUT: i64 = 5;
/// Maximum time of the actions, in seconds.
const ACTIONS_TIMEOUT: i64 = 120;
/// Maximum number of bytes of the child's messages that are kept.
const MAX_MESSAGES: u64 = 16 << 10;

/// The result of the helper.
#[derive(Debug)]
#[non_exhaustive]
pub struct HelperReport {
    /// The exit status of the process that performed the actions; `None` if it was killed because it took longer than two minutes.
    pub actions: Option<ExitStatus>,
    /// The standard error of that process.
    pub messages: String,
    /// The error of handling the core image, if any.
    pub core_image: Option<String>,
}

/// Runs the helper that the kernel starts: `child` acts on the core dump with the user's rights, and the core image on the standard input
/// is handled as configured in `config`. `child` is a command that calls [`act_as_dumper`]; it gets the arguments after its own.
///
/// # Errors
///
/// If the child cannot be started; the core image has been handled then.
pub fn run_helper(core: &CoreArguments, child: Command, config: Option<&Path>) -> io::Result<HelperReport> {
    let started = start(core, child);
    if let Ok((child, _)) = &started {
        wait_until_ready(child);
    }
    let core_image = dispose(core, config.unwrap_or(Path::new(Config::PLACE)));
    let (mut child, messages) = started?;
    let actions = wait(&mut child)?;
    let messages = messages.join().unwrap_or_default();
    Ok(HelperReport { actions, messages, core_image: core_image.err().map(|error| error.to_string()) })
}

/// Runs the child of the helper: takes the rights of the process, notifies the helper that the process may end, and calls `act` with the
/// path of the process's run directory. Returns `None` if there is no run directory: the process was not traced.
///
/// # Errors
///
/// If `/proc` cannot be read, or the rights cannot be taken.
pub fn act_as_dumper<R>(core: &CoreArguments, act: impl FnOnce(&Path) -> R) -> io::Result<Option<R>> {
    let run_dir = Dumper::read(core.dump()).and_then(Dumper::enter)?;
    // An error means that the helper did not wait.
    let _ = io::stdout().write_all(b"\n").and_then(|()| io::stdout().flush());
    Ok(run_dir.exists().then(|| act(&run_dir)))
}

fn start(core: &CoreArguments, mut command: Command) -> io::Result<(Child, thread::JoinHandle<String>)> {
    command.args(core.values()).env_clear().current_dir("/");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let errors = child.stderr.take();
    let collect = move || {
        let mut text = Vec::new();
        if let Some(errors) = errors {
            // Output beyond the limit is read too, so that the child does not block.
            let mut errors = errors;
            let _ = (&mut errors).take(MAX_MESSAGES).read_to_end(&mut text);
            let _ = io::copy(&mut errors, &mut io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    Ok((child, thread::spawn(collect)))
}

/// Waits until the child has read `/proc`, or has ended.
fn wait_until_ready(child: &Child) {
    if let Some(stdout) = &child.stdout {
        wait_readable(stdout, READY_TIMEOUT);
    }
}

/// Waits for the end of the child; kills it after [`ACTIONS_TIMEOUT`].
fn wait(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let in_time = match pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) {
        Some(handle) => {
            let in_time = wait_readable(&handle, ACTIONS_TIMEOUT);
            if !in_time {
                let _ = pidfd_send_signal(&handle, Signal::KILL);
            }
            in_time
        }
        // A kernel older than 5.3.
        None => true,
    };
    let status = child.wait()?;
    Ok(in_time.then_some(status))
}

fn wait_readable(file: impl AsFd, seconds: i64) -> bool {
    let mut files = [PollFd::new(&file, PollFlags::IN)];
    let timeout = Timespec { tv_sec: seconds, tv_nsec: 0 };
    loop {
        match poll(&mut files, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Passes the core image on, writes it to a file, or reads it to its end: the process blocks until that is done.
fn dispose(core: &CoreArguments, config: &Path) -> io::Result<()> {
    // Without a configuration there is nothing to pass on to.
    let config = Config::read(config).unwrap_or_default();
    let mut input = io::stdin().lock();
    let saved = match &config.save {
        Some(dir) => save(core, dir, &mut input),
        None if config.chain => chain(core, &config.previous),
        None => Ok(()),
    };
    io::copy(&mut input, &mut io::sink())?;
    saved
}

/// Writes the core image to a new file that only root can read. A file that cannot be written completely is removed.
fn save(core: &CoreArguments, dir: &Path, input: &mut impl Read) -> io::Result<()> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let CoreDump { pid, executable, time, .. } = core.dump();
    let name: String = executable.to_string_lossy().chars().map(plain).collect();
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default().as_secs();
    let path = dir.join(format!("core.{name}.{pid}.{time}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let copied = io::copy(input, &mut file).and_then(|_| file.sync_all());
    if copied.is_err() {
        let _ = std::fs::remove_file(&path);
    }
    copied.map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display())))
}

/// Runs the previously installed handler, which reads the core image from the standard input.
fn chain(core: &CoreArguments, previous: &str) -> io::Result<()> {
    let words = pattern::expand(previous, core.values()).map_err(io::Error::other)?;
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("the former pattern is empty"))?;
    let status = Command::new(program).args(arguments).env_clear().status();
    match status
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start {}: {error}", program.display())))?
    {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("{}: {status}", program.display()))),
    }
}

/// Writes messages of the helper to the kernel's log: the kernel starts it without a standard error.
pub fn log_to_kernel(message: &str) {
    let Ok(mut log) = OpenOptions::new().write(true).open("/dev/kmsg") else { return };
    for line in message.lines() {
        let _ = log.write_all(format!("tracectl: {line}\n").as_bytes());
    }
}

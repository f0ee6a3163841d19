//! A program that closes every descriptor above 2 after it has started its agent, as daemons and sandboxes do, and reuses the numbers: the
//! tracer does not write to its files, does not close any of them, and its sessions continue.

use crate::common::{Other, Outcome, again, assert_balances, part, until_ready};
use crate::traced::{PATIENCE, Place, spec, tick, traces};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{fcntl_dupfd_cloexec, fcntl_getfd};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::Duration;
use tracepoint_controller::Recorder;
use tracepoint_run_dir::Rights;
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Agent, Session};
use tracepoint_session_io::owner::end_with_this_process;
use tracepoint_session_spec::{DrainedBy, SinkSpec};

/// The variable that names the directory of the program's own files.
const OWN: &str = "TEST_OWN";
/// The count of each eventfd of the program.
const COUNT: [u8; 8] = [7; 8];
/// The contents of each file.
const CONTENTS: &[u8] = b"the program's own";

/// Returns the numbers of the open descriptors above 2.
fn open_numbers() -> std::io::Result<BTreeSet<RawFd>> {
    let numbers = fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // One of them was the descriptor of the directory.
    Ok(numbers.filter(|number| *number > 2 && fs::read_link(format!("/proc/self/fd/{number}")).is_ok()).collect())
}

/// The files that the program opens under the numbers that it has closed.
struct Own {
    files: Vec<(File, u64)>,
    /// Descriptors to which a wake-up of the tracer would write.
    counters: Vec<OwnedFd>,
}

impl Own {
    /// Uses all of these numbers, and the lowest ones.
    fn open(dir: &Path, numbers: &BTreeSet<RawFd>) -> Result<Self, Box<dyn std::error::Error>> {
        let mut own = Self { files: Vec::new(), counters: Vec::new() };
        for number in numbers {
            if number % 3 == 0 {
                let counter = eventfd(0, EventfdFlags::NONBLOCK)?;
                rustix::io::write(&counter, &COUNT)?;
                own.counters.extend([fcntl_dupfd_cloexec(&counter, *number)?, counter]);
                continue;
            }
            let path = dir.join(format!("{number}"));
            let mut file = File::options().read(true).append(true).create_new(true).open(&path)?;
            file.write_all(CONTENTS)?;
            let inode = file.metadata()?.ino();
            own.files.extend([(File::from(fcntl_dupfd_cloexec(&file, *number)?), inode), (file, inode)]);
        }
        Ok(own)
    }

    /// Checks that all are open and unchanged.
    fn check(&mut self) -> Outcome {
        for (file, inode) in &mut self.files {
            let number = file.as_raw_fd();
            fcntl_getfd(&*file).map_err(|error| format!("{number}: {error}"))?;
            assert_eq!(file.metadata()?.ino(), *inode, "descriptor {number} is another file");
            let mut contents = Vec::new();
            file.rewind()?;
            file.read_to_end(&mut contents)?;
            assert_eq!(contents, CONTENTS, "descriptor {number}: {}", contents.escape_ascii());
        }
        for counter in self.counters.iter().step_by(2) {
            let mut value = [0; 8];
            rustix::io::read(counter, &mut value)?;
            assert_eq!(value, COUNT, "descriptor {}", counter.as_raw_fd());
            rustix::io::write(counter, &value)?;
        }
        Ok(())
    }
}

/// The program: closes everything and opens its own files on request.
fn daemon() -> Outcome {
    let _agent = Agent::start()?;
    spawn(|| {
        for n in 0.. {
            tracepoint::trace!(tick(n, 0));
            sleep(Duration::from_micros(200));
        }
    });
    let own_dir = std::env::var(OWN)?;
    let place = Path::new(&own_dir).join("code");
    let session = (Session::builder("code").events("traced:tick").dir(place.join("rings")))
        .sink(CtfSink::create(place.join("ctf"))?)
        .sink(TextSink::create(place.join("text"))?)
        .sink(DtSink::create(place.join("all.dt"), 64)?)
        .start()?;
    println!("ready");
    let mut own = None;
    let mut session = Some(session);
    for line in std::io::stdin().lines() {
        match line?.as_str() {
            "close" => {
                let numbers = open_numbers()?;
                for number in 3..1024 {
                    // SAFETY: as a program does that does not know the descriptors of its libraries.
                    unsafe { libc::close(number) };
                }
                own = Some(Own::open(Path::new(&own_dir), &numbers)?);
            }
            "check" => own.as_mut().ok_or("nothing was closed")?.check()?,
            "stop" => {
                let summary = session.take().ok_or("it was stopped")?.stop()?;
                assert!(summary.events()[0].recorded > 100, "{summary:?}");
            }
            other => return Err(format!("{other:?} is no request").into()),
        }
        println!("done");
    }
    Ok(())
}

fn ask(daemon: &mut Other, what: &str) -> Outcome {
    daemon.say(what)?;
    assert!(daemon.says("done"), "it could not {what}");
    Ok(())
}

#[test]
fn a_daemon_that_closes_all_descriptors_keeps_its_files_and_is_recorded() -> Outcome {
    if part() == "daemon" {
        return daemon();
    }
    let place = Place::new();
    let own = place.temp.path().join("own");
    fs::create_dir_all(own.join("code"))?;
    let test = "closed_descriptors::a_daemon_that_closes_all_descriptors_keeps_its_files_and_is_recorded";
    let command = &mut again(test, "daemon");
    let mut daemon = until_ready(command.env("TRACEPOINT_RUN_DIR", place.run_dir()).env(OWN, &own));
    let files = place.temp.path().join("files");
    fs::create_dir(&files)?;
    let sinks = [
        ("ctf", vec![SinkSpec::ctf(place.out("ctf")).into()]),
        ("text", vec![SinkSpec::text(files.join("all.txt")).into()]),
        ("dt", vec![SinkSpec::dt(files.join("all.dt")).into()]),
        ("udp", vec![SinkSpec::udp(([127, 0, 0, 1], 0).into()).into()]),
        ("flight", vec![]),
    ];
    let mut remote = spec(&["traced:tick"], &[]);
    remote.drain = DrainedBy::Recorder;
    end_with_this_process(&mut remote);
    let remote = place.controller.create("remote", &remote)?;
    place.until_recorded(&remote, 20);
    let recorder =
        Recorder::start(&remote, vec![SinkSpec::ctf(place.out("remote")).into()], 1 << 30, Rights::default())?;
    let mut sessions = Vec::new();
    for (name, sinks) in &sinks {
        let mut spec = spec(&["traced:tick"], sinks);
        end_with_this_process(&mut spec);
        if sinks.is_empty() {
            "overwrite".clone_into(&mut spec.channel.policy);
        }
        sessions.push(place.controller.create(name, &spec)?);
    }
    for session in &sessions {
        place.until_recorded(session, 20);
    }
    ask(&mut daemon, "close")?;
    // The process is not mistaken for a dead one meanwhile.
    assert_eq!(place.controller.processes()?.len(), 1);
    for session in &sessions {
        place.until_recorded(session, 200);
        ask(&mut daemon, "check")?;
    }
    let server = place.acks(&sessions[3])[0].servers[0];
    let client = UdpSocket::bind("127.0.0.1:0")?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.send_to(&[1], server)?;
    assert!(client.recv(&mut [0; 2048])? > 0, "the server answers");
    let snapshot = place.temp.path().join("snapshot");
    sessions[4].snapshot(&snapshot)?;
    ask(&mut daemon, "check")?;
    place.until_recorded(&remote, 200);
    assert!(
        recorder.recorded().iter().all(|process| !process.complete),
        "it is not taken for a process that has ended"
    );
    let removed = remote.destroy(PATIENCE, false)?;
    assert!(removed.silent.is_empty(), "{:?}", removed.silent);
    let result = recorder.finish(&[]).remove(0);
    assert!(result.complete && result.errors.is_empty(), "{result:?}");
    assert_eq!(result.counters.map(|counters| counters.recorded), Some(removed.acks[0].counters.recorded));
    assert_balances(&result.outputs[0]);
    ask(&mut daemon, "stop")?;
    for session in sessions {
        let removed = session.destroy(PATIENCE, false)?;
        assert!(removed.silent.is_empty(), "{:?}", removed.silent);
        assert_eq!(removed.acks[0].error, None, "{removed:?}");
        ask(&mut daemon, "check")?;
    }
    for trace in
        [traces(&place.out("ctf")).remove(0), files.join("all.dt"), own.join("code/ctf"), own.join("code/all.dt")]
    {
        assert_balances(&trace);
    }
    for lines in [files.join("all.txt"), own.join("code/text")] {
        assert!(fs::read_to_string(&lines)?.lines().count() > 200, "{}", lines.display());
    }
    assert!(daemon.end());
    Ok(())
}

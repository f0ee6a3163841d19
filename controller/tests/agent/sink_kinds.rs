//! The kinds of sinks in a session: their outputs in each process, refusals, and full disks.

use crate::common::{Outcome, again_mounted, assert_balances, fill_up, memory_place, part};
use crate::traced::{PATIENCE, Place, is_traced, refreshed_acks, spec, traces, until};
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use tracepoint_reader::{Item, Trace};
use tracepoint_run_dir::{Ack, AckState};
use tracepoint_session_spec::SinkSpec;

fn events(path: &std::path::Path) -> Result<usize, tracepoint_reader::ReadError> {
    Ok(Trace::open(path)?.items().filter(|item| matches!(item, Item::Event(_))).count())
}

#[test]
fn each_process_has_files_and_a_server_of_its_own() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "sink_kinds::each_process_has_files_and_a_server_of_its_own";
    let files = place.temp.path().join("files");
    fs::create_dir(&files)?;
    let sinks = [
        SinkSpec::dt(files.join("all.dt")).into(),
        SinkSpec::text(files.join("all.txt")).into(),
        SinkSpec::udp(([127, 0, 0, 1], 0).into()).into(),
        SinkSpec::ctf(files.join("ctf")).into(),
        SinkSpec::dt(&files).into(),
    ];
    let children = [place.start(test), place.start(test)];
    let session = place.controller.create("kinds", &spec(&["traced:tick"], &sinks))?;
    let acks = place.until_recorded(&session, 20);
    let mut ports: Vec<u16> = acks.iter().flat_map(|ack| &ack.servers).map(std::net::SocketAddr::port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() == 2 && ports[0] > 0, "{acks:?}");
    let removed = session.destroy(PATIENCE, false)?;
    for ack in &removed.acks {
        assert_eq!((ack.error.as_ref(), ack.servers.len(), ack.outputs.len()), (None, 0, 4), "{ack:?}");
        for output in &ack.outputs {
            if output.extension().is_some_and(|extension| extension == "txt") {
                assert!(fs::read_to_string(output)?.lines().count() > 9, "{}", output.display());
            } else {
                assert_balances(output);
                assert!(events(output)? > 9, "{}", output.display());
            }
        }
    }
    // The first process uses the named file.
    let named =
        |name: &str| removed.acks.iter().flat_map(|ack| &ack.outputs).filter(|o| **o == files.join(name)).count();
    assert_eq!((named("all.dt"), named("all.txt")), (1, 1));
    let all: Vec<PathBuf> = fs::read_dir(&files)?.flatten().map(|entry| entry.path()).collect();
    assert_eq!(all.len(), 2 + 2 + 1 + 2, "{all:?}");
    drop(children);
    Ok(())
}

#[test]
fn a_port_in_use_is_refused_and_leaves_no_file() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let files = place.temp.path().join("files");
    fs::create_dir(&files)?;
    let _child = place.start("sink_kinds::a_port_in_use_is_refused_and_leaves_no_file");
    let taken = UdpSocket::bind("127.0.0.1:0")?;
    let sinks = [
        SinkSpec::ctf(files.join("ctf")).into(),
        SinkSpec::text(files.join("text")).into(),
        SinkSpec::udp(taken.local_addr()?).into(),
    ];
    let session = place.controller.create("taken", &spec(&["traced:tick"], &sinks))?;
    for _ in 0..3 {
        let ack = refreshed_acks(&place.controller, &session)?.remove(0);
        assert_eq!(ack.state, AckState::Refused);
        assert!(ack.error.as_ref().is_some_and(|error| error.contains("choose another port, or 0")), "{ack:?}");
        assert_eq!(traces(&files.join("ctf")), Vec::<PathBuf>::new());
        assert!(!files.join("text").exists());
    }
    // As soon as it is free.
    drop(taken);
    let ack = until(&place, &session, |ack| ack.state == AckState::Recording)?;
    assert_eq!((ack.error, ack.servers.len()), (None, 1));
    session.destroy(PATIENCE, false)?;
    Ok(())
}

/// An error in the file is reported until the file is replaced.
#[test]
fn an_invalid_session_file_is_reported_until_it_is_replaced() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("sink_kinds::an_invalid_session_file_is_reported_until_it_is_replaced");
    let session = place.record("s", &["traced:tick"]);
    place.until_recorded(&session, 5);
    let file = session.path().join("session.toml");
    let text = fs::read_to_string(&file)?;
    fs::write(&file, format!("mood = 1\n{text}"))?;
    for _ in 0..3 {
        let ack = refreshed_acks(&place.controller, &session)?.remove(0);
        assert_eq!(ack.state, AckState::Recording);
        assert!(ack.error.as_ref().is_some_and(|error| error.contains("`mood`")), "{ack:?}");
    }
    fs::write(&file, &text)?;
    assert_eq!(refreshed_acks(&place.controller, &session)?[0].error, None);
    session.destroy(PATIENCE, false)?;
    Ok(())
}

#[test]
fn a_full_disk_is_reported_and_retried() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let test = "sink_kinds::a_full_disk_is_reported_and_retried";
    let Some(small) = part().strip_prefix("at ").map(PathBuf::from) else {
        let place = memory_place();
        let again = again_mounted(test, &format!("at {}", place.path().display()), place.path(), "4m");
        assert!(again.is_none_or(|mut test| test.status().is_ok_and(|status| status.success())));
        return Ok(());
    };
    let place = Place::new();
    let _child = place.start(test);
    let ballast = fill_up(&small)?;
    let spec = spec(&["traced:tick"], &[SinkSpec::ctf(small.join("out")).rotate_size(1 << 30).into()]);
    let session = place.controller.create("full", &spec)?;
    for _ in 0..3 {
        let ack = refreshed_acks(&place.controller, &session)?.remove(0);
        assert_eq!(ack.state, AckState::Refused);
        assert!(
            ack.error.as_ref().is_some_and(|error| error.contains("a twentieth") && error.contains("free some space"))
        );
        assert_eq!(traces(&small.join("out")), Vec::<PathBuf>::new(), "it leaves nothing");
    }
    fs::remove_file(&ballast)?;
    until(&place, &session, |ack| ack.state == AckState::Recording && ack.counters.bytes > 0)?;

    // The disk runs full during the recording: losses are counted and reported, and a failed rotation leaves the current chunk open.
    let ballast = fill_up(&small)?;
    let ack = until(&place, &session, |ack| !ack.notices.is_empty() && ack.counters.lost.contains_key("sink"))?;
    assert!(ack.notices[0].to_string().contains("writing resumes when there is space"), "{ack:?}");
    let generation = session.rotate()?.generation;
    let ack = session.wait(generation, PATIENCE)?.acks.remove(0);
    let rotated = ack.rotated.ok_or("no rotation")?;
    assert!(rotated.error.as_ref().is_some_and(|error| error.contains("the next chunk")), "{rotated:?}");
    let has = |ack: &Ack, part: &str| ack.notices.iter().any(|notice| notice.to_string().contains(part));
    assert!(
        has(&refreshed_acks(&place.controller, &session)?[0], "the next chunk"),
        "it is reported until one succeeds"
    );
    fs::remove_file(&ballast)?;
    let before = ack.counters.bytes;
    until(&place, &session, |ack| !has(ack, "nothing is written") && ack.counters.bytes > before)?;
    let generation = session.rotate()?.generation;
    let rotated = session.wait(generation, PATIENCE)?.acks.remove(0).rotated.ok_or("no rotation")?;
    assert_eq!((rotated.number, rotated.chunks.len(), rotated.error), (2, 1, None));
    assert_eq!(refreshed_acks(&place.controller, &session)?[0].notices, []);
    session.destroy(PATIENCE, false)?;
    let traces = traces(&small.join("out"));
    assert_eq!(traces.len(), 1);
    assert_balances(&traces[0]);
    Ok(())
}

//! Two processes record under one session name; in the merged trace no effect precedes its cause.

use crate::common::{Outcome, assert_balances, memory_place, path_of, view};
use std::env;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use tracepoint_session::Session;
use tracepoint_session::sinks::CtfSink;

tracepoint::define_trace! {
    provider = "game";
    pub ping(round: u32) { round: u32 = round }
    pub pong(round: u32) { round: u32 = round }
}

const ROUNDS: u32 = 2_000;
/// The variable with the directory of the game.
const PLACE: &str = "TEST_GAME_PLACE";
/// The variable with the side of a process.
const SIDE: &str = "TEST_GAME_SIDE";

#[test]
fn merged_events_of_two_processes_keep_causal_order() -> Outcome {
    own_process!();
    if let Some(place) = env::var_os(PLACE) {
        return play(Path::new(&place), &env::var(SIDE)?);
    }
    let place = memory_place();
    // The server listens before either side begins.
    let mut server = player(place.path(), "server")?;
    while !place.path().join("socket").exists() {
        assert!(server.try_wait()?.is_none(), "the server ended too soon");
        std::thread::yield_now();
    }
    let mut client = player(place.path(), "client")?;
    assert!(client.wait()?.success() && server.wait()?.success());

    let traces: Vec<PathBuf> = ["client", "server"].map(|side| place.path().join(side)).into();
    let viewed = view(&[&traces[0], &traces[1]]);
    assert_eq!(viewed.warnings, "");
    let order: Vec<String> = viewed.lines.iter().map(|line| message_of(line)).collect();
    let expected: Vec<String> =
        (0..ROUNDS).flat_map(|round| ["ping", "pong"].map(|event| format!("game:{event} {round}"))).collect();
    assert_eq!(order.len(), expected.len());
    let first_inversion = order.iter().zip(&expected).find(|(seen, expected)| seen != expected);
    assert_eq!(first_inversion, None);
    // If each process measured it, the offsets from the time of day would differ: too little to be noticed here, and too much elsewhere.
    assert_eq!(clock_offset(&traces[0])?, clock_offset(&traces[1])?);
    for trace in &traces {
        assert_balances(trace);
    }
    Ok(())
}

/// Returns the line of the metadata with the clock's offset.
fn clock_offset(trace: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let metadata = std::fs::read_to_string(trace.join("metadata"))?;
    Ok(metadata.lines().find(|line| line.contains("offset =")).ok_or("no offset")?.to_owned())
}

/// Extracts `game:ping 7` from a line of babeltrace2's output.
fn message_of(line: &str) -> String {
    let name = line.split_whitespace().find(|word| word.starts_with("game:")).unwrap_or_default();
    let round = line.rsplit("round = ").next().unwrap_or_default();
    format!("{} {}", name.trim_end_matches(':'), round.trim_end_matches(" }"))
}

fn player(place: &Path, side: &str) -> std::io::Result<Child> {
    Command::new(env::current_exe()?)
        .args(["--exact", &path_of("merged_events_of_two_processes_keep_causal_order"), "--quiet"])
        .envs([
            (PLACE, place.as_os_str()),
            (SIDE, side.as_ref()),
            ("TRACEPOINT_RUN_DIR", place.join("run").as_os_str()),
        ])
        .spawn()
}

fn play(place: &Path, side: &str) -> Outcome {
    let socket = place.join("socket");
    let serves = side == "server";
    let session = Session::builder("game").events("game:*").sink(CtfSink::create(place.join(side))?).start()?;
    assert_eq!(session.notices(), []);
    let mut peer = if serves { UnixListener::bind(&socket)?.accept()?.0 } else { UnixStream::connect(&socket)? };
    let mut byte = [0];
    for round in 0..ROUNDS {
        if serves {
            peer.read_exact(&mut byte)?;
            tracepoint::trace!(pong(round));
            peer.write_all(&byte)?;
        } else {
            tracepoint::trace!(ping(round));
            peer.write_all(&byte)?;
            peer.read_exact(&mut byte)?;
        }
    }
    session.stop()?;
    Ok(())
}

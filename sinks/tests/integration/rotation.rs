//! A trace that is rotated while it is recorded: each chunk is a complete trace, and all together are the whole one.

use crate::common::{Outcome, Recording, Shared, alone, assert_balances, channel, place, view};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tracepoint_reader::account::Account;
use tracepoint_reader::text::Style;
use tracepoint_reader::{Item, Trace, chunk_name, verify};
use tracepoint_sinks::{CtfSink, TextSink};

tracepoint::define_trace! {
    provider = "cut";
    pub step(n: u64) { n: u64 = n }
    pub other(n: u64) { n: u64 = n }
}

fn fire(numbers: std::ops::Range<u64>) {
    for n in numbers {
        tracepoint::trace!(step(n));
        if n % 3 == 0 {
            tracepoint::trace!(other(n));
        }
    }
}

fn chunks(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns the lines that babeltrace2 prints for each chunk separately, and for all together, without a warning.
fn viewed(dir: &Path) -> (Vec<String>, Vec<String>) {
    let lines = |dir: &Path| {
        let (out, warnings) = view(dir);
        assert_eq!(warnings, "", "{}", dir.display());
        // The time difference to the previous line differs at the beginning of a chunk.
        out.lines().map(without_delta).collect::<Vec<_>>()
    };
    (chunks(dir).iter().flat_map(|chunk| lines(chunk)).collect(), lines(dir))
}

fn without_delta(line: &str) -> String {
    let (time, rest) = line.split_once(" (").unwrap_or((line, ""));
    format!("{time} {}", rest.split_once(") ").map_or("", |(_, rest)| rest))
}

#[test]
fn chunks_are_traces_and_together_complete() -> Outcome {
    let _alone = alone();
    let place = place();
    let (dir, text) = (place.path().join("trace"), Shared::default());
    let sinks: Vec<Box<dyn tracepoint_sinks::Sink>> =
        vec![Box::new(CtfSink::create(&dir)?), Box::new(TextSink::new(text.clone()).options(Style::Babeltrace.into()))];
    let mut recording = Recording::start(channel(), sinks)?;
    assert!(recording.drain.can_rotate());
    assert_eq!(recording.drain.rotate()?, Vec::<PathBuf>::new(), "there is nothing to close");
    assert!(dir.join("metadata").exists(), "and the trace is whole");
    let mut closed = Vec::new();
    for round in 0..5 {
        // One thread ends, one continues, and the second round loses events, because nothing is drained in between.
        let many = if round == 2 { 20_000 } else { 500 };
        std::thread::spawn(move || fire(round * 100_000..round * 100_000 + many)).join().map_err(|_| "a panic")?;
        fire(round * 100_000 + 50_000..round * 100_000 + 50_300);
        closed.extend(recording.drain.rotate()?);
    }
    fire(900_000..900_010);
    let reports = recording.finish();

    let found = chunks(&dir);
    assert_eq!(found, (1..=6).map(|number| dir.join(chunk_name(number))).collect::<Vec<_>>());
    assert_eq!(closed, found[..5]);
    for chunk in &found {
        assert_balances(chunk);
    }
    assert_balances(&dir);
    let end = Account::open(&found[5])?.chunk.ok_or("no chunk")?;
    assert!(end.last && end.number == 6);
    let lost: u64 = reports[0].account.channels[0].streams.iter().map(|stream| stream.discarded).sum();
    assert!(lost > 0, "there is something to count");

    // The text sink has no chunks.
    let oracle: BTreeSet<String> =
        text.lines().iter().filter(|line| !line.starts_with("[lost")).map(|line| without_delta(line)).collect();
    let (one_by_one, all) = viewed_with_losses(&dir);
    assert_eq!(one_by_one.len(), all.len(), "no event is in two chunks");
    assert_eq!(one_by_one.iter().cloned().collect::<BTreeSet<_>>(), oracle);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), oracle);
    // The reader joins the streams: it reports each loss once, and no packet is missing between chunks.
    let mut discarded = 0;
    for item in Trace::open(&dir)?.items() {
        match item {
            Item::Loss(missing) => match missing.kind {
                tracepoint_reader::LossKind::Events(Some(events)) => discarded += events,
                kind => return Err(format!("{kind:?}").into()),
            },
            Item::Damage(damage) => return Err(damage.into()),
            _ => {}
        }
    }
    assert_eq!(discarded, lost);
    // For a single chunk it reports the losses of that chunk, by its account.
    let of_chunk = |chunk: &Path| -> Result<u64, tracepoint_reader::ReadError> {
        let items = Trace::open(chunk)?.items();
        let losses = items.filter_map(|item| if let Item::Loss(missing) = item { Some(missing.kind) } else { None });
        let known = |kind| if let tracepoint_reader::LossKind::Events(Some(events)) = kind { events } else { u64::MAX };
        Ok(losses.fold(0_u64, |sum, kind| sum.saturating_add(known(kind))))
    };
    let each = found.iter().map(|chunk| of_chunk(chunk)).collect::<Result<Vec<_>, _>>()?;
    assert_eq!(each.iter().fold(0_u64, |sum, own| sum.saturating_add(*own)), lost, "{each:?}");
    assert_eq!(Trace::open_all(&[found[3].clone(), found[0].clone(), dir.clone()])?.metadata().count(), 6);
    Ok(())
}

/// Like [`viewed`], but babeltrace2 may warn about discarded events.
fn viewed_with_losses(dir: &Path) -> (Vec<String>, Vec<String>) {
    let lines = |dir: &Path| {
        let (out, warnings) = view(dir);
        assert!(warnings.lines().all(|line| line.contains("discarded") && line.contains("event")), "{warnings}");
        out.lines().map(without_delta).collect::<Vec<_>>()
    };
    (chunks(dir).iter().flat_map(|chunk| lines(chunk)).collect(), lines(dir))
}

#[test]
fn rotation_by_size_with_retention() -> Outcome {
    let _alone = alone();
    let place = place();
    let dir = place.path().join("trace");
    let sink = CtfSink::create(&dir)?.rotate_size(20_000).keep(3);
    let mut recording = Recording::start(channel(), vec![Box::new(sink)])?;
    for round in 0..40 {
        fire(round * 500..round * 500 + 500);
        recording.drain.drain();
    }
    let report = recording.finish().remove(0);
    let found = chunks(&dir);
    assert_eq!(found.len(), 3);
    let last = Account::open(&found[2])?.chunk.ok_or("no chunk")?;
    assert!(last.number > 10, "{last:?}");
    assert_eq!((last.removed.chunks, report.account.chunk.as_ref()), (last.number - 3, Some(&last)));
    for chunk in &found {
        assert_balances(chunk);
        let stream = chunk.join("channel0_0");
        assert!(stream.metadata()?.len() < 20_000 + (4 << 10), "{}", stream.display());
    }
    assert_balances(&dir);
    let (one_by_one, all) = viewed(&dir);
    assert_eq!(one_by_one.len(), all.len());
    assert_eq!(all.len() as u64 + last.removed.events, report.account.channels[0].streams[0].recorded);

    // A missing chunk is detected.
    fs::remove_dir_all(&found[1])?;
    let failed: Vec<_> = verify(&dir)?.failures().map(|check| check.rule).collect();
    assert!(failed.contains(&'R') && failed.contains(&'O'), "{failed:?}");
    assert!(verify(&found[2])?.passed(), "by itself it is whole");
    Ok(())
}

#[test]
fn rotation_by_time_skips_empty_chunks() -> Outcome {
    let _alone = alone();
    let place = place();
    let dir = place.path().join("trace");
    let sink = CtfSink::create(&dir)?.rotate_every(Duration::from_millis(1));
    let mut recording = Recording::start(channel(), vec![Box::new(sink)])?;
    for round in 1..4 {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(2));
            recording.drain.drain();
        }
        assert_eq!(chunks(&dir).len(), round, "nothing came, and nothing is cut");
        fire(0..10);
        recording.drain.flush(Duration::ZERO);
        recording.drain.drain();
        assert_eq!(chunks(&dir).len(), round + 1);
    }
    // A process that is killed at this point leaves a chunk without streams.
    assert_eq!(view(&dir.join(chunk_name(4))), (String::new(), String::new()));
    recording.finish();
    assert_balances(&dir);
    Ok(())
}

/// A file exists at the path of the next chunk.
#[test]
fn a_failed_rotation_continues_the_current_chunk() -> Outcome {
    let _alone = alone();
    let place = place();
    let dir = place.path().join("trace");
    let mut recording = Recording::start(channel(), vec![Box::new(CtfSink::create(&dir)?)])?;
    // Before the first rotation, during it, and after it.
    for number in [1, 2, 3] {
        fire(0..100);
        recording.drain.flush(Duration::ZERO);
        recording.drain.drain();
        let obstacle = dir.join(chunk_name(number));
        fs::write(&obstacle, "")?;
        let error = recording.drain.rotate().err().ok_or("there was no place")?.to_string();
        assert!(error.starts_with(&format!("cannot begin the next chunk of {}", dir.display())), "{error}");
        fs::remove_file(&obstacle)?;
        fire(100..200);
        recording.drain.drain();
        if number != 1 {
            assert_eq!(recording.drain.rotate()?, [dir.join(chunk_name(number - 1))]);
        }
    }
    let report = recording.finish().remove(0);
    assert_eq!(chunks(&dir).len(), 3);
    assert!(report.error.is_none(), "the caller got the error");
    assert_balances(&dir);
    assert_eq!(viewed(&dir).1.len() as u64, report.account.channels[0].streams[0].recorded);
    Ok(())
}

/// A kill during the first rotation leaves each stream in one of two directories.
#[test]
fn a_trace_killed_during_rotation_is_complete() -> Outcome {
    let _alone = alone();
    let place = place();
    let dir = place.path().join("trace");
    let mut recording = Recording::start(channel(), vec![Box::new(CtfSink::create(&dir)?)])?;
    for thread in 0..3 {
        std::thread::spawn(move || fire(thread * 1000..thread * 1000 + 100)).join().map_err(|_| "a panic")?;
        recording.drain.drain();
    }
    fire(5000..5010);
    recording.finish();
    let whole: Vec<_> = view(&dir).0.lines().map(without_delta).collect();
    let first = dir.join(chunk_name(1));
    fs::create_dir(&first)?;
    fs::copy(dir.join("metadata"), first.join("metadata"))?;
    let streams = tracepoint_reader::stream_files(&dir)?;
    for stream in &streams {
        fs::rename(stream, first.join(stream.file_name().ok_or("no name")?))?;
        let found: Vec<_> = [&dir, &first]
            .into_iter()
            .flat_map(|part| view(part).0.lines().map(without_delta).collect::<Vec<_>>())
            .collect();
        assert_eq!(found.iter().collect::<BTreeSet<_>>(), whole.iter().collect());
        let events = Trace::open(&dir)?.items().filter(|item| matches!(item, Item::Event(_))).count();
        assert_eq!((found.len(), events), (whole.len(), whole.len()));
    }
    assert!(!streams.is_empty());
    Ok(())
}

#[test]
fn a_trace_that_was_not_begun_leaves_no_directory() -> Outcome {
    let place = place();
    let dir = place.path().join("a");
    CtfSink::create(&dir)?;
    CtfSink::remove_unused(&dir)?;
    assert!(!dir.exists());
    fs::create_dir_all(dir.join(chunk_name(1)).join(".account"))?;
    fs::write(dir.join(chunk_name(1)).join("metadata"), "begun")?;
    CtfSink::remove_unused(&dir)?;
    assert!(!dir.exists());
    for of_others in ["notes", "channel0_0"] {
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("metadata"), "theirs")?;
        fs::write(dir.join(of_others), "mine")?;
        CtfSink::remove_unused(&dir)?;
        assert_eq!(fs::read_dir(&dir)?.count(), 2);
        fs::remove_dir_all(&dir)?;
    }
    assert!(CtfSink::remove_unused(&dir).is_err());
    Ok(())
}

/// Chunks are removed from a directory that was renamed, and not from the one that has its path now.
#[test]
fn retention_removes_chunks_of_a_renamed_directory() -> Outcome {
    let _alone = alone();
    let place = place();
    let (dir, moved) = (place.path().join("trace"), place.path().join("moved"));
    let mut recording = Recording::start(channel(), vec![Box::new(CtfSink::create(&dir)?.keep(2))])?;
    fire(0..10);
    recording.drain.rotate()?;
    fs::rename(&dir, &moved)?;
    let foreign = dir.join(chunk_name(1)).join(".account");
    fs::create_dir_all(&foreign)?;
    fs::write(foreign.join("precious"), "")?;
    for round in 1..5 {
        fire(round * 10..round * 10 + 10);
        recording.drain.rotate()?;
    }
    recording.finish();
    assert!(foreign.join("precious").exists());
    assert_eq!(chunks(&moved), [5, 6].map(|number| moved.join(chunk_name(number))));
    assert_balances(&moved);
    Ok(())
}

/// The variable with the trace of the process that the test below kills.
const KILLED: &str = "TEST_KILLED_TRACE";

/// The process is killed when it writes the metadata of a chunk: the chunk before can be read, and the trace can be replaced.
#[test]
fn a_kill_at_the_beginning_of_a_chunk_leaves_the_others_readable() -> Outcome {
    own_process!();
    if let Some(dir) = env::var_os(KILLED) {
        let mut recording = Recording::start(channel(), vec![Box::new(CtfSink::create(dir)?)])?;
        fire(0..9);
        recording.drain.flush(Duration::ZERO);
        recording.drain.drain();
        recording.drain.rotate()?;
        return Ok(());
    }
    let place = place();
    let dir = place.path().canonicalize()?.join("trace");
    let chunk = dir.join(chunk_name(2));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o"]).arg(place.path().join("log")).args(["-e", "inject=write:signal=KILL"]);
    for file in ["metadata", ".account/.metadata.new"] {
        strace.arg("-P").arg(chunk.join(file));
    }
    strace.arg(env::current_exe()?).args(["--exact", "--nocapture"]);
    strace.arg("rotation::a_kill_at_the_beginning_of_a_chunk_leaves_the_others_readable");
    let status = strace.env(KILLED, &dir).stdout(Stdio::null()).status()?;
    assert_eq!(status.signal(), Some(9), "{status}");
    assert_eq!(chunks(&dir).last(), Some(&chunk));
    let events = Trace::open(&dir)?.items().filter(|item| matches!(item, Item::Event(_))).count();
    assert_eq!(events, 9 + 3);
    drop(CtfSink::replace(&dir)?);
    assert!(chunks(&dir).is_empty());
    Ok(())
}

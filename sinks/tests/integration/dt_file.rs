//! Circular files have the newest packets, one per slot, and an account that balances with overwritten and refused packets.

use crate::common::{Outcome, Recording, Shared, assert_balances, place, view};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_reader::text::{Style, TextWriter};
use tracepoint_reader::{DtTrace, Item, LossKind, Trace, verify};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::{DtError, DtSink, Sink, TextSink};

tracepoint::define_trace! {
    provider = "circle";
    pub stepped(thread: u32, n: u64) { thread: u32 = thread, n: u64 = n }
}

/// Events are recorded process-wide, so tests record one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const EVENTS: u64 = 2_000;

/// Records two threads, one after the other, whose packets are drained in between.
fn record(
    config: Channel,
    sinks: Vec<Box<dyn Sink>>,
) -> Result<tracepoint_sinks::SinkReport, Box<dyn std::error::Error>> {
    let _alone = ALONE.lock();
    let mut recording = Recording::start(config, sinks)?;
    for thread in 0..2 {
        std::thread::scope(|scope| {
            let drain = &mut recording.drain;
            scope.spawn(move || {
                for n in 0..EVENTS {
                    tracepoint::trace!(stepped(thread, n));
                    if n % 100 == 99 {
                        drain.drain();
                    }
                }
            });
        });
    }
    Ok(recording.finish().remove(0))
}

fn channel() -> Channel {
    Channel::discard(32 << 10).packets(8)
}

/// Returns the lines of a trace's events, and the numbers of packets and events reported as missing.
fn shown(path: &Path) -> Result<(Vec<String>, u64, u64), Box<dyn std::error::Error>> {
    let mut writer = TextWriter::new(Style::Babeltrace.into());
    let (mut lines, mut packets, mut events) = (Vec::new(), 0, 0);
    for item in Trace::open(path)?.items() {
        match &item {
            Item::Event(_) => {
                let mut line = Vec::new();
                writer.write_item(&mut line, &item)?;
                lines.push(String::from_utf8(line)?);
            }
            Item::Loss(loss) => {
                let LossKind::Packets { packets: Some(p), events: Some(e) } = loss.kind else {
                    return Err(format!("{:?}", loss.kind).into());
                };
                packets += p;
                events += e;
            }
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok((lines, packets, events))
}

#[test]
fn a_trace_that_fits_is_kept_complete() -> Outcome {
    let place = place();
    let (path, text) = (place.path().join("all.dt"), Shared::default());
    let sinks: Vec<Box<dyn Sink>> = vec![
        Box::new(DtSink::create(&path, 100)?),
        Box::new(TextSink::new(text.clone()).options(Style::Babeltrace.into())),
    ];
    let report = record(channel(), sinks)?;
    assert!(report.error.is_none(), "{report:?}");
    let (lines, packets, _) = shown(&path)?;
    assert_eq!((lines.concat(), packets), (text.text(), 0), "as another sink has it");
    assert_balances(&path);
    let summary = DtTrace::open(&path)?.summary()?;
    assert_eq!((summary.streams, summary.gone_packets, summary.complete), (2, 0, true));
    assert!(summary.packets >= 2 * EVENTS * 20 / 4096, "{summary:?}");
    Ok(())
}

#[test]
fn a_file_that_has_wrapped_keeps_the_newest_and_counts_the_rest() -> Outcome {
    let place = place();
    for slots in [1, 2, 5, 13] {
        let path = place.path().join(format!("newest{slots}.dt"));
        let report = record(channel(), vec![Box::new(DtSink::create(&path, slots)?)])?;
        assert!(report.error.is_none(), "{report:?}");
        let length = path.metadata()?.len();
        assert!(length < u64::from(slots) * 5000 + (128 << 10), "{length} bytes for {slots} slots");
        let (lines, packets, events) = shown(&path)?;
        let summary = DtTrace::open(&path)?.summary()?;
        assert_eq!((summary.packets, summary.gone_packets, summary.gone_events), (u64::from(slots), packets, events));
        assert_eq!(lines.len() as u64 + events, 2 * EVENTS, "{slots} slots");
        let last = format!("{{ thread = 1, n = {} }}\n", EVENTS - 1);
        assert!(lines.last().is_some_and(|line| line.ends_with(&last)), "{last}");
        assert_balances(&path);
        let account = &report.account.channels[0];
        assert_eq!(account.streams.iter().map(|stream| stream.overwritten).sum::<u64>(), events);

        // The same after a conversion to a directory, and back to a file.
        let (directory, again) = (path.with_extension("ctf"), path.with_extension("again.dt"));
        let converted = convert(&path, &directory, ConvertOptions::default(), |_| {})?;
        assert_eq!((converted.streams, converted.damage.len()), (2, 0));
        let (stdout, warnings) = view(&directory);
        assert_eq!(stdout, lines.concat());
        assert!(warnings.contains("Tracer discarded"), "{warnings}");
        assert_balances(&directory);
        convert(&directory, &again, ConvertOptions::default(), |_| {})?;
        assert_eq!(shown(&again)?, (lines, packets, events));
        assert_balances(&again);
    }
    Ok(())
}

#[test]
fn converting_into_too_few_slots_keeps_the_newest() -> Outcome {
    let place = place();
    let [path, directory, small] = ["all.dt", "ctf", "small.dt"].map(|name| place.path().join(name));
    record(channel(), vec![Box::new(DtSink::create(&path, 100)?)])?;
    convert(&path, &directory, ConvertOptions::default(), |_| {})?;
    let mut options = ConvertOptions::default();
    options.slots = Some(3);
    let mut progress = Vec::new();
    let converted = convert(&directory, &small, options, |step| progress.push((step.done, step.total)))?;
    assert!(progress.is_sorted() && progress.last().is_some_and(|(done, total)| done == total), "{progress:?}");
    assert_eq!(DtTrace::open(&small)?.summary()?.gone_packets, converted.dropped);
    let (lines, _, events) = shown(&small)?;
    assert_eq!(lines.len() as u64 + events, 2 * EVENTS);
    assert_balances(&small);
    options.slot_size = Some(1000);
    let error = convert(&directory, &place.path().join("never.dt"), options, |_| {}).err().ok_or("it was made")?;
    assert!(error.to_string().contains("a slot of 1000 bytes cannot hold packets of up to"), "{error}");
    Ok(())
}

#[test]
fn slots_smaller_than_the_packets_are_refused() -> Outcome {
    let place = place();
    let path = place.path().join("small.dt");
    let error = record(channel(), vec![Box::new(DtSink::create(&path, 4)?.slot_size(4096))]).err().ok_or("it began")?;
    let message = error.to_string();
    assert!(
        message.contains("a slot of 4096 bytes does not take the session's packets of up to 4096 bytes"),
        "{message}"
    );
    assert!(message.contains("give it 4104 (`DtSink::slot_size`)"), "{message}");
    assert!(!path.exists(), "nothing is left of it");
    record(channel(), vec![Box::new(DtSink::create(&path, 4)?.slot_size(4104))])?;
    Ok(())
}

#[test]
fn a_file_has_one_writer_and_is_not_replaced_by_default() -> Outcome {
    let _alone = ALONE.lock();
    let place = place();
    let path = place.path().join("one.dt");
    let first = Recording::start(channel(), vec![Box::new(DtSink::create(&path, 4)?)])?;
    for replace in [false, true] {
        let second = DtSink::create(&path, 4)?.replace(replace);
        let error = Recording::start(channel(), vec![Box::new(second)]).err().ok_or("two write one file")?;
        assert!(error.to_string().contains("another trace object is writing this file"), "{error}");
    }
    first.finish();
    let older = path.metadata()?.ino();
    let error = Recording::start(channel(), vec![Box::new(DtSink::create(&path, 4)?)]).err().ok_or("replaced")?;
    assert!(error.to_string().contains("exists already; choose another name, or remove it"), "{error}");
    assert_eq!(path.metadata()?.ino(), older);
    Recording::start(channel(), vec![Box::new(DtSink::create(&path, 4)?.replace(true))])?.finish();
    assert_ne!(path.metadata()?.ino(), older);
    assert_eq!(std::fs::read_dir(place.path())?.count(), 1, "nothing else is left");
    Ok(())
}

#[test]
fn invalid_sizes_are_refused() -> Outcome {
    let place = place();
    let path = place.path().join("huge.dt");
    assert!(matches!(DtSink::create(&path, 0), Err(DtError::Limit { .. })));
    assert!(matches!(DtSink::create(&path, 1 << 31), Err(DtError::Limit { .. })));
    assert!(matches!(DtSink::create(place.path().join("no/huge.dt"), 4), Err(DtError::Io { .. })));
    for (slots, size, message) in [
        (1 << 30, 1 << 20, "it must be from 1 to"),
        (15 << 20, 1 << 20, "huge.dt (make room for all slots): no storage space; make room, or record"),
    ] {
        let sink = DtSink::create(&path, slots)?.slot_size(size);
        let error = record(channel(), vec![Box::new(sink)]).err().ok_or("it began")?;
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(std::fs::read_dir(place.path())?.count(), 0, "nothing is left");
    Ok(())
}

/// A killed process leaves metadata and an incomplete account.
#[test]
fn a_file_that_is_being_written_can_be_read() -> Outcome {
    let _alone = ALONE.lock();
    let place = place();
    let path = place.path().join("open.dt");
    let mut recording = Recording::start(channel(), vec![Box::new(DtSink::create(&path, 100)?)])?;
    assert_eq!(shown(&path)?.0.len(), 0, "it can be read from the beginning");
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1000).for_each(|n| tracepoint::trace!(stepped(7, n))));
    });
    recording.drain.drain();
    let (lines, packets, _) = shown(&path)?;
    assert!(lines.len() > 500 && packets == 0, "{} lines", lines.len());
    let report = verify(&path)?;
    let failures: Vec<_> = report.failures().map(|check| (check.rule, check.left.as_str())).collect();
    assert_eq!(failures, [('A', "not complete: the session had not ended when it was written")]);
    recording.finish();
    assert_balances(&path);
    Ok(())
}

#[test]
fn a_program_adds_postambles_of_its_own() -> Outcome {
    let place = place();
    let (path, reserved) = (place.path().join("own.dt"), place.path().join("reserved.dt"));
    let mut calls = 0;
    let counted = move || {
        calls += 1;
        format!("call {calls}").into_bytes()
    };
    let sink = DtSink::create(&path, 8)?.postamble(*b"call", counted).postamble(*b"conf", || b"a = 1".to_vec());
    let _alone = ALONE.lock();
    let recording = Recording::start(channel(), vec![Box::new(sink)])?;
    let contents = |tag| -> Result<_, datatrace::ReadError> {
        Ok(datatrace::DtReader::open(&path)?.tagged_postamble(tag)?.map(|newest| newest.contents))
    };
    // As after a kill.
    assert_eq!(contents(*b"call")?.as_deref(), Some(&b"call 1"[..]));
    recording.finish();
    assert_eq!(contents(*b"call")?.as_deref(), Some(&b"call 2"[..]));
    assert_eq!(contents(*b"conf")?.as_deref(), Some(&b"a = 1"[..]));
    DtTrace::open(&path)?;
    let sink = DtSink::create(&reserved, 8)?.postamble(*b"ctfa", Vec::new);
    let error = Recording::start(channel(), vec![Box::new(sink)]).map(drop).unwrap_err().to_string();
    assert!(error.contains("the trace itself has a postamble `ctfa`"), "{error}");
    assert!(!reserved.exists());
    Ok(())
}

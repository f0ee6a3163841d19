//! The fast path copies texts of all lengths, with a NUL in every position, with each clock that has its own code.

use crate::skip::skip;
use std::sync::Arc;
use std::time::Duration;
use tracepoint::marker::Subscriber;
use tracepoint_ring::channel::{AnonymousMemory, Channel, HEADER_SIZE, OpenChannel};
use tracepoint_ring::clock::{self, Clock};

tracepoint::define_trace! {
    provider = "shortest";
    said(n: u32, words: &str, more: &str) { n: u32 = n, words: str = words, more: str = more, end: u8 = 7 }
}

/// More than twice the size of the largest unit in which texts are copied.
const LONGEST: usize = 70;

/// Returns texts of every length, without a NUL and with one NUL in every position.
fn texts() -> Vec<String> {
    let text = |length: usize, nul: Option<usize>| -> String {
        (0..length).map(|at| if Some(at) == nul { '\0' } else { char::from(b'a' + (at % 26) as u8) }).collect()
    };
    let of_length = |length| (0..length).map(Some).chain([None]).map(move |nul| text(length, nul));
    (0..LONGEST).flat_map(of_length).collect()
}

/// Splits a text and its NUL off the front.
fn text<'b>(bytes: &mut &'b [u8]) -> &'b [u8] {
    let end = bytes.iter().position(|byte| *byte == 0).expect("a NUL behind a text");
    let (text, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    text
}

/// Records all texts, and returns the times of the records.
fn record() -> Vec<u64> {
    let channel =
        OpenChannel::open(Channel::discard(1 << 22), [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("opens");
    let marker = tracepoint::find("shortest:said").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("an id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    let texts = texts();
    for (n, words) in (0..).zip(&texts) {
        trace_said(n, words, "and more");
    }
    drop(subscription);
    let account = channel.account();
    let event = &account.events[0];
    let altered = texts.iter().filter(|text| text.contains('\0')).count() as u64;
    assert_eq!((event.fired, event.recorded, event.total_lost()), (texts.len() as u64, texts.len() as u64, 0));
    assert_eq!((account.streams[0].recorded, account.streams[0].altered), (texts.len() as u64, altered));
    assert_eq!(account.streams[0].clamped, 0, "what comes again has a time of its own");

    let mut times = Vec::new();
    let take = |packet: tracepoint_ring::channel::Packet<'_>| {
        let mut bytes = &packet.bytes[HEADER_SIZE..];
        while !bytes.is_empty() {
            let word = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            let n = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
            bytes = &bytes[12..];
            assert_eq!(n as usize, times.len());
            assert_eq!(text(&mut bytes), texts[n as usize].replace('\0', "\u{1a}").as_bytes(), "{n}");
            assert_eq!((text(&mut bytes), bytes[0]), (&b"and more"[..], 7), "{n}");
            bytes = &bytes[1..];
            times.push(word >> 16);
        }
    };
    channel.finish(take).expect("its subscription has ended");
    channel.close();
    assert_eq!(times.len(), texts.len());
    times
}

#[test]
fn texts_arrive_whole_and_are_counted_once() {
    own_process!();
    // First with the kernel's clock, which is called as a function.
    let by_call = record();
    if let Err(reason) = clock::calibrate(Duration::from_millis(10)) {
        return skip(
            &format!("the time stamp counter cannot be trusted: {reason}"),
            "Run on a machine whose counter is invariant",
        );
    }
    let by_counter = record();
    let times: Vec<_> = by_call.iter().chain(&by_counter).copied().collect();
    assert!(times[0] > 0 && times.is_sorted(), "one axis, which does not go back");
    clock::select(Clock::None).expect("no channel is open");
    assert!(record().iter().all(|time| *time == 0));
}

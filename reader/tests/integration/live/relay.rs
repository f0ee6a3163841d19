//! A relay in memory, which answers each request at once.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_reader::live::{LiveError, LiveOptions, LiveUrl, LiveView};
use tracepoint_reader::{Item, PollResult};
use tracepoint_wire::Decoded;
use tracepoint_wire::live::{
    AttachStatus, Connect, Request, SessionCreated, SessionRecord, Sessions, StreamRecord, Streams,
};

/// Random numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `end`, which is not 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27) % end
    }
}

/// The viewer's end of a connection to a relay that is a function.
pub(super) struct Socket<F> {
    answer: F,
    requests: Vec<u8>,
    replies: VecDeque<u8>,
    /// True if the connection ends after the last reply.
    pub(super) closes: bool,
}

impl<F: FnMut(Request) -> Vec<u8>> Socket<F> {
    pub(super) fn new(answer: F) -> Self {
        Self { answer, requests: Vec::new(), replies: VecDeque::new(), closes: false }
    }
}

impl<F: FnMut(Request) -> Vec<u8>> Write for Socket<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.requests.extend_from_slice(bytes);
        while let Ok(Decoded::Whole(request, size)) = Request::decode(&self.requests) {
            self.requests.drain(..size);
            self.replies.extend((self.answer)(request));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F> Read for Socket<F> {
    /// At most 9999 bytes at a time, so that replies arrive in pieces.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let size = bytes.len().min(9999).min(self.replies.len());
        if size == 0 && !self.closes {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.replies.drain(..size).zip(bytes).for_each(|(byte, place)| *place = byte);
        Ok(size)
    }
}

pub(super) fn url() -> LiveUrl {
    "net://relay/host/web/shop".parse().unwrap()
}

/// The reply to the requests before `ATTACH_SESSION`.
pub(super) fn opening(request: Request) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match request {
        Request::Connect(_) => Connect::relay(1).encode(&mut out),
        Request::ListSessions => {
            let (hostname, name) = ("web".to_owned(), "shop".to_owned());
            let session = SessionRecord { id: 7, live_timer_us: 1, clients: 0, streams: 2, hostname, name };
            Sessions(vec![session]).encode(&mut out);
        }
        Request::CreateSession => SessionCreated(true).encode(&mut out),
        _ => return None,
    }
    Some(out)
}

/// The announcement of a data stream, or of the metadata, of trace 1.
pub(super) fn stream(id: u64, is_metadata: bool) -> StreamRecord {
    let channel = if is_metadata { "metadata".to_owned() } else { format!("channel0_{id}") };
    StreamRecord { id, trace: 1, is_metadata, path: "web/shop".to_owned(), channel }
}

pub(super) fn bytes_of(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

pub(super) fn attached(streams: Vec<StreamRecord>) -> Vec<u8> {
    bytes_of(|out| Streams { status: AttachStatus::Ok, streams }.encode(out))
}

/// Maximum time that a view may only wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Views until the session or the view ends; returns the items, and how it ended. A view that only waits fails.
pub(super) fn view_all<S: Read + Write>(socket: S, options: &LiveOptions) -> (Vec<Item>, Result<u64, LiveError>) {
    let mut items = Vec::new();
    let mut view = match LiveView::over(socket, &url(), options) {
        Ok(view) => view,
        Err(error) => return (items, Err(error)),
    };
    let mut moved = Instant::now();
    loop {
        match view.poll() {
            Ok(PollResult::Item(item)) => {
                items.push(item);
                moved = Instant::now();
            }
            Ok(PollResult::Ended) => return (items, Ok(view.late())),
            Ok(_) => sleep(Duration::from_micros(10)),
            Err(error) => return (items, Err(error)),
        }
        assert!(moved.elapsed() < PATIENCE, "it waits for ever; {} items", items.len());
    }
}

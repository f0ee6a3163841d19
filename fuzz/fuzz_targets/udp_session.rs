//! A client of the UDP trace server against any server: well-formed messages with any contents, malformed datagrams, and time in between. The
//! client's reports are in order and add up; it never spins, and delivered batches can be decoded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use tracepoint_reader::udp::{BatchDecoder, Client, Layout, LossReport, Options, Report};
use tracepoint_wire::udp::{
    Batch, Challenge, End, LegacyPacket, Losses, Mark, MarkKind, Ping, Text, TextKind, Welcome,
};

/// The rest of the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    /// Bytes; their number, in steps of 8, is in the first byte.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?) * 8;
        let (first, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        Some(first)
    }
}

/// The next datagram of the server.
fn datagram(input: &mut Input<'_>, kind: u8, seq: u32) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match kind {
        0 => out.extend_from_slice(input.bytes()?),
        1 => {
            let byte = input.byte()?;
            let kinds = [MarkKind::TraceBegin, MarkKind::TraceEnd, MarkKind::SessionBegin, MarkKind::SessionEnd];
            let offer = (byte & 4 != 0).then_some(u16::from(byte));
            out.extend_from_slice(&Mark { kind: kinds[usize::from(byte & 3)], offer }.encode(seq));
        }
        2 => LegacyPacket { time_ns: input.number()?.into(), content: input.bytes()? }.encode(seq, &mut out).ok()?,
        3 => out.extend_from_slice(&Challenge { token: [input.byte()?; 16] }.encode(seq)),
        4 => {
            let session = input.byte()?.into();
            let welcome =
                Welcome { first: true, mtu: 1400, timeout_ms: 5000, uuid: [7; 16], earlier: input.number()?.into() };
            out.extend_from_slice(&welcome.encode(seq, session));
        }
        5 => {
            let (session, word, total) = (input.byte()?.into(), input.number()?, input.number()?);
            let kind = if word & 1 == 0 { TextKind::Metadata } else { TextKind::Account };
            let offset = (word >> 1) % (1 << 16);
            Text { kind, offset, total, bytes: input.bytes()? }.encode(seq, session, &mut out);
        }
        6 => {
            let (session, before, events) = (input.byte()?.into(), input.number()?, input.byte()?.into());
            let (number, packets) = (input.number()?, input.bytes()?);
            Batch { events_before: before.into(), events, number, packets }.encode(seq, session, &mut out);
        }
        7 => {
            let session = input.byte()?.into();
            let ping = Ping { events: u64::from(input.number()?) << 8, batches: input.number()? };
            out.extend_from_slice(&ping.encode(seq, session));
        }
        _ => {
            let session = input.byte()?.into();
            let end = End {
                trace: true,
                batches: input.number()?,
                events: input.number()?.into(),
                legacy: input.byte()?.into(),
                metadata: 0,
                account: input.number()?,
                lost: Losses { limit: u64::MAX, rate: input.byte()?.into(), ..Losses::default() },
            };
            out.extend_from_slice(&end.encode(seq, session));
        }
    }
    Some(out)
}

/// The reports so far.
#[derive(Default)]
struct Reported {
    decoder: BatchDecoder,
    metadata: usize,
    /// The position of the next event in the session.
    position: u64,
    /// The lowest number that the next message in the legacy layout can have. Marks are reported without their numbers.
    seq: Option<u32>,
}

impl Reported {
    fn take(&mut self, report: Report) {
        match report {
            Report::SessionBegin(Layout::Batch(_)) => self.position = 0,
            Report::SessionBegin(Layout::Legacy) => self.seq = None,
            Report::Metadata(text) => {
                self.metadata += text.len();
                assert!(self.metadata <= 64 << 20);
                self.decoder.grow(&text);
            }
            Report::Batch(batch) => {
                assert_eq!(batch.events_before, self.position, "what came and what was lost add up");
                self.position += u64::from(batch.events);
                let _ = self.decoder.events(&batch, |event| drop(event), |damage| assert!(!damage.reason.is_empty()));
            }
            Report::Lost(LossReport::Events(count)) => self.position = self.position.saturating_add(count),
            Report::Lost(LossReport::Messages { first, count }) => self.pass(first, count),
            Report::Event(event) => self.pass(event.seq, 1),
            _ => {}
        }
    }

    /// `count` messages have arrived or were lost, from `seq` on. A loss may exceed half of the number space, so that only the following number
    /// distinguishes it from a step back.
    fn pass(&mut self, seq: u32, count: u64) {
        let after = self.seq.is_none_or(|next| seq.wrapping_sub(next).cast_signed() >= 0);
        assert!(after, "messages come in their order");
        self.seq = Some(seq.wrapping_add(count as u32));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let Some(flags) = input.byte() else { return };
    let options = Options {
        legacy: flags & 1 != 0,
        events_limit: std::num::NonZeroU64::new(u64::from(flags >> 1)),
        max_held: 16,
        ..Options::default()
    };
    let (mut client, mut now, mut reported) =
        (Client::new(options, Duration::ZERO), Duration::ZERO, Reported::default());
    while let Some(kind) = input.byte() {
        match kind % 16 {
            kind @ 0..9 => {
                let Some(seq) = input.number() else { break };
                let Some(datagram) = datagram(&mut input, kind, seq) else { break };
                client.receive(&datagram, now);
            }
            9 => client.refused(now),
            10 => client.stop(),
            _ => now += Duration::from_millis(input.byte().unwrap_or(1).into()),
        }
        let mut wakes = 0;
        while client.deadline().is_some_and(|deadline| deadline <= now) {
            client.wake(now);
            wakes += 1;
            assert!(wakes < 16, "it spins");
        }
        while let Some(datagram) = client.outgoing() {
            assert!(!datagram.is_empty() && datagram.len() <= 64);
        }
        while let Some(report) = client.report() {
            reported.take(report);
        }
    }
});

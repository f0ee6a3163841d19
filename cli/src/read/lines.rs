//! Output as lines, in the format of the legacy client.

use super::{Output, each_event};
use crate::failure::Failure;
use crate::output;
use std::io::{self, Write};
use std::num::NonZeroU64;
use tracepoint_reader::text::{self, is_control};
use tracepoint_reader::udp::{BatchDecoder, Counts, EventBatch, LossReport, Report, SessionEnd};

pub(super) struct Lines {
    out: output::Raw,
    decoder: BatchDecoder,
}

impl Lines {
    pub(super) fn new(limit: Option<NonZeroU64>) -> io::Result<Self> {
        let mut out = output::raw();
        if let Some(limit) = limit {
            writeln!(out, "Client-server session is limited by {limit} events.")?;
        }
        Ok(Self { out, decoder: BatchDecoder::default() })
    }

    fn batch(&mut self, batch: &EventBatch) -> Result<bool, Failure> {
        let mut content = Vec::new();
        let out = &mut self.out;
        each_event(&mut self.decoder, batch, |event| {
            content.clear();
            text::write_event(&mut content, &event);
            event_line(out, i128::from(event.time_ns), &content)
        })
    }

    fn lost(&mut self, lost: LossReport) -> io::Result<()> {
        let out = &mut self.out;
        match lost {
            LossReport::Messages { first, count } => {
                writeln!(out, "[lost: {count} messages, the first with number {first}]")
            }
            LossReport::Beginning => writeln!(out, "[lost: the beginning of the session]"),
            LossReport::Events(count) => writeln!(out, "[lost: {count} events]"),
            LossReport::BeforeOffer(count) => {
                writeln!(out, "[lost: {count} events, sent one by one before the server knew this client]")
            }
            LossReport::Metadata(bytes) => writeln!(out, "[lost: {bytes} bytes of the metadata]"),
            LossReport::Unsent(losses) => {
                let (limit, rate, large, failed) = (losses.limit, losses.rate, losses.too_large, losses.failed);
                writeln!(
                    out,
                    "[lost by the server: {limit} events over its limit, {rate} over its rate, {large} too large, {failed} failed]"
                )
            }
            _ => writeln!(out, "[lost: {lost:?}]"),
        }
    }
}

impl Output for Lines {
    fn write(&mut self, report: Report) -> Result<bool, Failure> {
        let out = &mut self.out;
        match report {
            Report::SessionBegin(_) => writeln!(out, "Receive session begins.")?,
            Report::TraceBegin => writeln!(out, "Trace begins.")?,
            Report::Metadata(text) => self.decoder.grow(&text),
            Report::Event(event) => event_line(out, i128::from(event.time_ns), &event.content)?,
            Report::Batch(batch) => return self.batch(&batch),
            Report::Lost(lost) => self.lost(lost)?,
            Report::Late(0) => {}
            Report::Late(count) => writeln!(out, "[late: {count} events, reported as lost above]")?,
            Report::StopSent => writeln!(out, "Send STOP command to the server.")?,
            Report::TraceEnd => writeln!(out, "Trace ends.")?,
            Report::SessionEnd => writeln!(out, "Receive session ends.")?,
            _ => {}
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>, _: SessionEnd, _: &Counts) -> Result<bool, Failure> {
        self.flush()?;
        Ok(true)
    }
}

/// `(SECONDS.MICROSECONDS): size=N, content=…`. Control characters, and bytes that are not UTF-8, are escaped as in `\x1b`.
fn event_line(out: &mut impl Write, time_ns: i128, content: &[u8]) -> io::Result<()> {
    let microseconds = time_ns.div_euclid(1000);
    let (seconds, fraction) = (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    write!(out, "({seconds}.{fraction:06}): size={}, content=", content.len())?;
    for chunk in content.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_control(character) {
                write!(out, "\\x{:02x}", u32::from(character))?;
            } else {
                write!(out, "{character}")?;
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_in_lines() {
        let mut out = Vec::new();
        event_line(&mut out, 1_000_005_999, b"a\n\x1b[0m\xff\xc3\xa9").unwrap();
        event_line(&mut out, -1, b"").unwrap();
        let expected = "(1.000005): size=9, content=a\\x0a\\x1b[0m\\xffé\n(-1.999999): size=0, content=\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

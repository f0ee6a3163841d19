//! Converts a dt file to a CTF directory.

use std::io::Write;
use std::path::Path;

use super::{ConversionSummary, ConvertError, Progress, not_converted};
use crate::dt::DtTrace;
use crate::loss::Damage;
use crate::packet::PacketDecoder;
use crate::recover::{RecoverError, Target};

pub(super) fn convert(
    trace: &DtTrace,
    out: &Path,
    report: &mut dyn FnMut(Progress),
) -> Result<ConversionSummary, ConvertError> {
    let account = trace.account()?;
    let target = Target::create(out)?;
    let mut converted = ConversionSummary { streams: trace.streams().len() as u64, ..ConversionSummary::default() };
    converted.damage = trace.damage().iter().map(not_converted).collect();
    let total = trace.streams().iter().flat_map(|stream| stream.parts.iter()).map(|part| part.length).sum();
    target.describe(trace.metadata_text())?;
    let mut readable = true;
    for stream in trace.streams() {
        let path = out.join(&stream.name);
        let mut file = target.create_file(&stream.name)?;
        let (mut window, mut next) = (trace.window(stream), 0);
        loop {
            let packet = match window.next_packet(&mut next) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(damage) => {
                    readable = false;
                    converted.damage.push(not_converted(damage));
                    continue;
                }
            };
            if let Err(Damage { reason, .. }) = PacketDecoder::new(trace.metadata(), packet) {
                readable = false;
                let path = trace.path().display();
                converted.damage.push(not_converted(format_args!("{path}: {}, packet {next}: {reason}", stream.name)));
                continue;
            }
            file.write_all(packet).map_err(RecoverError::write(&path))?;
            // A packet at the edge of a stream only has counters, and takes no slot.
            converted.packets += u64::from(stream.is_in_slot(next.saturating_sub(1)));
            converted.bytes += packet.len() as u64;
            report(Progress { done: converted.bytes, total });
        }
    }
    // An account from another moment than the packets, or of unreadable packets, would not balance. Without an account, `verify`
    // reports that it is missing.
    if let Some(account) = account.filter(|account| account.complete && readable) {
        target.finish(&account)?;
    }
    converted.changed = trace.has_changed()?;
    Ok(converted)
}

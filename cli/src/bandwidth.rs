//! `tracectl bandwidth`: the bandwidth cap of a run directory, shared by all senders.

use crate::argument_error::ArgumentError;
use crate::failure::{Outcome, VerbResult};
use crate::session::controller;
use crate::{message, output, units};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The interval over which the current rate is measured.
const MEASURED: Duration = Duration::from_secs(1);

/// Shows or sets how much all processes may stream
///
/// The cap is for all processes of this user together (`--stream`, `--relay`). It belongs to the run directory, and applies immediately, also to
/// running sessions. Events that exceed it are lost, and counted under `bandwidth`. Control messages and synchronisation points are not limited. A
/// session can have its own, lower cap (`--max-bandwidth`).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl bandwidth             show the cap, and what is sent within a second
  tracectl bandwidth 2M/s        send 2 MiB per second at most
  tracectl bandwidth off         no limit
  tracectl bandwidth --json | jq .rate")]
pub(crate) struct Bandwidth {
    /// Bytes per second, such as `500K/s`; or `off`. Without it, the cap is shown
    #[arg(value_name = "RATE|off", value_parser = cap)]
    cap: Option<Cap>,
    /// Write one JSON object: `run_dir`, `max_bandwidth` (null: no limit), `sent` (bytes so far) and `rate` (bytes per second)
    #[arg(long)]
    json: bool,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

/// A rate in bytes per second; `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cap(Option<u64>);

fn cap(text: &str) -> Result<Cap, ArgumentError> {
    if text == "off" { Ok(Cap(None)) } else { units::rate(text).map(|rate| Cap(Some(rate))) }
}

impl Bandwidth {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.pid)?;
        let run_dir = controller.path().display();
        if let Some(Cap(rate)) = self.cap {
            controller.set_bandwidth(rate)?;
            if !self.json {
                let allowed =
                    rate.map_or("without a limit".to_owned(), |rate| format!("at most {}/s", units::bytes(rate)));
                message::note(&format!("the processes of {run_dir} stream {allowed}"));
                return Ok(Outcome::Success);
            }
        }
        let (before, began) = (controller.bandwidth()?, Instant::now());
        sleep(MEASURED);
        let now = controller.bandwidth()?;
        let bytes = u128::from(now.sent.saturating_sub(before.sent));
        let rate = u64::try_from(bytes * 1000 / began.elapsed().as_millis().max(1)).unwrap_or(u64::MAX);
        if self.json {
            let run_dir = controller.path().to_string_lossy();
            output::json(&json!({ "run_dir": run_dir, "max_bandwidth": now.rate, "sent": now.sent, "rate": rate }))?;
            return Ok(Outcome::Success);
        }
        let mut out = output::styled();
        let cap = now.rate.map_or("no limit".to_owned(), |rate| format!("{}/s", units::bytes(rate)));
        writeln!(out, "cap of {run_dir}: {cap}")?;
        writeln!(out, "in use: {}/s", units::bytes(rate))?;
        out.flush()?;
        Ok(Outcome::Success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_parsed() {
        assert_eq!(cap("off"), Ok(Cap(None)));
        assert_eq!(cap("2M/s"), Ok(Cap(Some(2 << 20))));
        assert!(cap("0").is_err() && cap("fast").is_err());
    }
}

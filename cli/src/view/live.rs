//! The events of a live session.

use super::View;
use super::clocks::{self, far_off_note};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::Interrupt;
use crate::message::{self, counted};
use crate::output;
use crate::progress::WaitingLine;
use crate::time_point::Context;
use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;
use std::thread::sleep;
use std::time::Duration;
use tracepoint_reader::live::{LiveError, LiveOptions, LiveUrl, LiveView, list_sessions};
use tracepoint_reader::{Damage, PollResult};
use tracepoint_wire::stream::SharedKey;

/// Pause before polling a relay again that had no data.
const PAUSE: Duration = Duration::from_millis(50);

/// Reports each clock that is far off once.
fn tell_far_off(view: &LiveView, told: &mut BTreeSet<String>) {
    for note in view.alignments().filter_map(|(metadata, alignment)| far_off_note(metadata, alignment)) {
        if !told.contains(&note) {
            message::note(&note);
            told.insert(note);
        }
    }
}

impl View {
    pub(super) fn live(&self, url: &LiveUrl) -> VerbResult {
        let mut options = LiveOptions::default();
        options.key = self.key_file.as_deref().map(SharedKey::read).transpose()?;
        if url.session.is_none() {
            if self.clocks {
                return Err(Failure::Usage(format!(
                    "`--clocks` is for one session: name one of those of `tracectl view {url}`"
                )));
            }
            return self.list(url, &options);
        }
        if self.follow || self.tail.is_some() {
            let reason = "a live session is followed anyway, and has no end: leave --follow and --tail out";
            return Err(Failure::Usage(reason.to_owned()));
        }
        if self.clocks {
            return self.live_clocks(url, options);
        }
        let mut printer = self.printer(&Context { range: None, utc: self.is_utc() }, false)?;
        options.from_beginning = self.times.has_begin();
        let stop = Interrupt::once()?;
        options.stop = stop.flag();
        let mut view = LiveView::open(url, &options)?;
        let line = WaitingLine::new(format!("viewing {url}"));
        let mut notes = BTreeSet::new();
        let ended = loop {
            match view.poll() {
                Ok(PollResult::Item(item)) => {
                    if printer.item(&item)?.is_break() {
                        break Ok(());
                    }
                }
                Ok(PollResult::Ended) | Err(LiveError::Stopped) => break Ok(()),
                Ok(_) if stop.is_requested() => break Ok(()),
                Ok(_) => {
                    printer.flush()?;
                    tell_far_off(&view, &mut notes);
                    sleep(PAUSE);
                }
                Err(error) => break Err(Failure::from(error)),
            }
        };
        drop(line);
        tell_far_off(&view, &mut notes);
        let place = url.to_string();
        for damage in view.clocks().filter_map(|(metadata, _)| Damage::of_metadata(place.as_ref(), metadata)) {
            message::note(&damage.to_string());
        }
        let (unchecked, late) = (view.unchecked(), view.late());
        view.close();
        let outcome = printer.finish(unchecked, late)?;
        ended.map(|()| outcome)
    }

    /// Waits until the alignment of the traces' clocks is known, and writes it in place of their events.
    fn live_clocks(&self, url: &LiveUrl, mut options: LiveOptions) -> VerbResult {
        let stop = Interrupt::once()?;
        options.stop = stop.flag();
        let mut view = LiveView::open(url, &options)?;
        let line = WaitingLine::new(format!("waiting for the clocks of {url}"));
        while !view.knows_clocks() && !stop.is_requested() {
            match view.poll() {
                Ok(PollResult::Item(_)) => {}
                Ok(PollResult::Ended) | Err(LiveError::Stopped) => break,
                Ok(_) => sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        drop(line);
        let place = url.to_string();
        let clocks = view.clocks().map(|(metadata, alignment)| (Cow::from(&place), metadata, alignment));
        clocks::write(clocks, self.json)?;
        view.close();
        Ok(Outcome::Success)
    }

    fn list(&self, url: &LiveUrl, options: &LiveOptions) -> VerbResult {
        let sessions = list_sessions(url, options)?;
        if self.json {
            for session in sessions {
                output::json(&json!({
                    "type": "session",
                    "url": format!("{url}/host/{}/{}", session.hostname, session.name),
                    "hostname": session.hostname,
                    "name": session.name,
                    "live_timer_us": session.live_timer_us,
                    "streams": session.streams,
                    "viewers": session.clients,
                }))?;
            }
            return Ok(Outcome::Success);
        }
        let mut out = output::styled();
        for session in sessions {
            let (streams, viewers) =
                (counted(session.streams.into(), "stream"), counted(session.clients.into(), "viewer"));
            let timer = match session.live_timer_us {
                0 => "not live".to_owned(),
                timer => format!("live, every {:?}", Duration::from_micros(timer.into())),
            };
            writeln!(out, "{url}/host/{}/{} ({timer}, {streams}, {viewers})", session.hostname, session.name)?;
        }
        out.flush()?;
        Ok(Outcome::Success)
    }
}

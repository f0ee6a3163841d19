//! Output as a CTF directory.

use super::{Output, report_damage};
use crate::failure::Failure;
use crate::message;
use std::path::Path;
use tracepoint_reader::udp::{self, AbsentEvents, Counts, Layout, LossReport, Report, SessionEnd};

pub(super) struct Directory {
    trace: udp::Directory,
    account: Option<Vec<u8>>,
    /// True once the metadata has arrived; without it the trace cannot be read.
    pub(super) described: bool,
    ended: bool,
    /// The number of events that the server sent before the first session.
    earlier: Option<u64>,
    not_here: AbsentEvents,
}

impl Directory {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let trace = udp::Directory::create(path)?;
        let not_here = AbsentEvents::default();
        Ok(Self { trace, account: None, described: false, ended: false, earlier: None, not_here })
    }

    /// Completes the directory; messages call it `shown`, the path known to the user.
    pub(super) fn close(self, shown: &Path) -> Result<(), Failure> {
        if self.described && self.account.is_none() {
            let why = if self.ended { "the trace has no account" } else { "the trace continues" };
            message::note(&format!(
                "{why}: losses at the end of this session are reported here, but are not in {}",
                shown.display()
            ));
        }
        Ok(self.trace.finish(self.account.as_deref(), self.not_here)?)
    }
}

impl Output for Directory {
    fn write(&mut self, report: Report) -> Result<bool, Failure> {
        let mut whole = true;
        match report {
            Report::SessionBegin(Layout::Legacy) => {
                return Err(Failure::NoServer(
                    "the server sends events one by one, without the metadata that a CTF trace needs; read them without --output"
                        .to_owned(),
                ));
            }
            Report::SessionBegin(Layout::Batch(welcome)) => {
                self.trace.begin();
                self.not_here.sent_elsewhere += self.earlier.replace(welcome.earlier).map_or(welcome.earlier, |_| 0);
            }
            Report::Lost(LossReport::BeforeOffer(events)) => self.not_here.sent_elsewhere += events,
            Report::Lost(LossReport::Unsent(losses)) => self.not_here.unsent = losses.total(),
            Report::Metadata(text) => {
                self.trace.grow(&text)?;
                self.described = true;
            }
            Report::Batch(batch) => {
                let count = self.trace.batch(&batch, |damage| {
                    report_damage(&damage.reason);
                    whole = false;
                })?;
                whole &= count == u64::from(batch.events);
            }
            Report::Account(text) => self.account = Some(text),
            Report::TraceEnd => self.ended = true,
            _ => {}
        }
        Ok(whole)
    }

    fn finish(self: Box<Self>, _: SessionEnd, _: &Counts) -> Result<bool, Failure> {
        let path = self.trace.path().to_owned();
        if !self.described {
            message::note(&format!("no trace has arrived; {} is empty", path.display()));
        }
        self.close(&path)?;
        Ok(true)
    }
}

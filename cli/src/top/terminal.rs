//! The loop that handles keys and refreshes, and the state of the terminal.

use super::model::{Model, Request};
use super::source::Source;
use super::view::{Theme, draw};
use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::WaitingInterrupt;
use crate::output;
use crossterm::event::{self, Event, KeyEventKind};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::stdin;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Maximum wait; bounds the delay until a change of the terminal's size between two waits is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Time limit for reading a key. With zero, the event source would not read at all.
const READ: Duration = Duration::from_millis(1);

/// Restores the terminal when it is dropped. On a panic, the hook of [`ratatui::try_init`] restores it before the message is printed.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows the source until a key or a signal ends it.
pub(super) fn run(mut source: impl Source) -> VerbResult {
    // Before the terminal is changed, so that a signal cannot leave it changed.
    let interrupt = WaitingInterrupt::without_children()?;
    let mut model = Model::default();
    model.update(source.overview()?);
    let mut terminal = ratatui::try_init()?;
    let restore = Restore;
    let result = show(&mut terminal, &interrupt, &mut model, &mut source);
    drop(restore);
    result?;
    Ok(Outcome::Success)
}

fn show(
    terminal: &mut DefaultTerminal,
    interrupt: &WaitingInterrupt,
    model: &mut Model,
    source: &mut impl Source,
) -> Result<(), Failure> {
    let theme = Theme::new(output::has_color());
    let mut refreshed = Instant::now();
    while !interrupt.is_requested() {
        terminal.draw(|frame| draw(frame, model, theme))?;
        let left = source.interval().map_or(LONGEST_WAIT, |interval| interval.saturating_sub(refreshed.elapsed()));
        if !wait(interrupt, left.min(LONGEST_WAIT)) {
            return Ok(());
        }
        while event::poll(READ)? {
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let done = match model.key(key) {
                Request::End => return Ok(()),
                Request::Stay => Ok(()),
                Request::Detail(focus) => source.detail(&focus).map(|detail| model.update_detail(detail)),
                Request::Leave => source.leave(),
                Request::Switch { event, on } => {
                    source.switch(&event, on).and_then(|()| source.overview()).map(|overview| model.update(overview))
                }
            };
            done.unwrap_or_else(|failure| model.fail(failure.to_string()));
        }
        if source.interval().is_some_and(|interval| refreshed.elapsed() >= interval) {
            refreshed = Instant::now();
            refresh(model, source).unwrap_or_else(|failure| model.fail(failure.to_string()));
        }
    }
    Ok(())
}

fn refresh(model: &mut Model, source: &mut impl Source) -> Result<(), Failure> {
    model.update(source.overview()?);
    if let Some(focus) = model.focus() {
        model.update_detail(source.detail(&focus)?);
    }
    Ok(())
}

/// Waits for a key, a signal (including a change of the terminal's size), or the end of `time`. Returns whether the terminal still exists: if hang-up
/// signals are ignored, as under `nohup`, this is the only indication.
fn wait(interrupt: &WaitingInterrupt, time: Duration) -> bool {
    let input = stdin();
    let mut sources = [input.as_fd(), interrupt.signals()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    // The caller checks for itself why the wait ended.
    let _ = poll(&mut sources, Timespec::try_from(time).ok().as_ref());
    !sources[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

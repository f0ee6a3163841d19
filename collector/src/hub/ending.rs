//! The end of sessions: their streams are closed, and they are removed when no viewer reads them.

use super::{Hub, Session};
use std::time::{Duration, Instant};

/// Time to wait for packets whose indexes have arrived, after the sender's control connection has ended.
const LINGER: Duration = Duration::from_secs(5);

impl Hub {
    /// Begins to close a session whose sender has disconnected or ended it.
    pub(crate) fn close_session(&mut self, id: u64, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.begin_closing(now);
        for handle in session.streams.clone() {
            if let Some(stream) = self.streams.get_mut(&handle) {
                stream.sender_is_gone();
            }
            self.advance(handle, now);
        }
        self.tidy(id, now);
    }

    pub(crate) fn close_all(&mut self, now: Instant) {
        for id in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.close_session(id, now);
        }
    }

    /// Advances the end of a session: closes streams whose packets no longer arrive, then the session, and removes it when no viewer needs it.
    pub(super) fn tidy(&mut self, id: u64, now: Instant) {
        let Some(since) = self.sessions.get(&id).and_then(Session::closing_since) else { return };
        let is_hurried = self.sessions.get(&id).is_some_and(|session| session.is_hurried);
        let is_late = is_hurried || now.saturating_duration_since(since) >= LINGER;
        if is_late {
            self.give_waiting(id);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let mut all_closed = true;
        for handle in session.streams.clone() {
            if let Some(stream) = self.streams.get_mut(&handle) {
                if is_late {
                    stream.give_up(|job| self.storage.give(handle, job));
                    self.counts.missing += std::mem::take(&mut stream.pairing.missing);
                }
                all_closed &= stream.view.is_closed;
            }
        }
        if !all_closed {
            return;
        }
        let Some(session) = self.sessions.get(&id) else { return };
        if !session.is_closed() {
            let what = format!("{} `{}` of {} ended", session.kind(), session.name, session.host);
            self.messages.push(what);
            self.discard_empty(id);
            self.sessions.get_mut(&id).into_iter().for_each(Session::close);
        }
        if self.sessions.get(&id).is_some_and(|session| session.viewers == 0 || is_hurried)
            && let Some(session) = self.sessions.remove(&id)
        {
            if let Some(streamed) = session.streamed {
                self.tokens.remove(&streamed.token);
            }
            session.streams.iter().for_each(|handle| drop(self.streams.remove(handle)));
        }
    }

    /// Removes the directory of a session whose sender left before it sent anything.
    fn discard_empty(&self, id: u64) {
        let Some(session) = self.sessions.get(&id) else { return };
        let (Some(streamed), Some(directory)) = (&session.streamed, &session.directory) else { return };
        let mut ordered = session.streams.iter().filter_map(|handle| self.streams.get(handle)?.ordered.as_ref());
        if streamed.metadata_bytes > 0 || ordered.any(|ordered| ordered.tally.packets > 0) {
            return;
        }
        let path = directory.borrow().path().to_owned();
        // If this fails, an empty trace stays, which readers accept. A parent directory stays while it contains another session.
        let _ = std::fs::remove_dir_all(&path);
        for above in path.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(above);
        }
    }

    /// Counts a viewer that attaches to or leaves a session.
    pub(crate) fn viewer(&mut self, id: u64, is_attached: bool, now: Instant) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.viewers = if is_attached { session.viewers + 1 } else { session.viewers.saturating_sub(1) };
        }
        self.tidy(id, now);
    }
}

//! Room for sessions and streams: checks of shares, and the release of resources that disconnected senders hold.

use super::session::Admission;
use super::{Hub, MAX_SESSIONS, Session};
use crate::shares::{Address, Holder, Share, Shares};
use anyhow::Context as _;
use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Number of files per stream: its packets and their index, or metadata and its directory.
pub(crate) const FILES_OF_STREAM: usize = 2;
/// Maximum number of bytes of incomplete accounts.
const ACCOUNT_BYTES: usize = 256 << 20;
/// Limits on messages about refusals: in each period, this many of one kind per address are reported singly, and this many pairs of address and kind
/// are tracked.
const REFUSAL_PAUSE: Duration = Duration::from_secs(10);
const TOLD_EACH: u64 = 10;
const MAX_TOLD: usize = 256;

#[derive(Debug)]
pub(crate) struct Room {
    sessions: Shares,
    /// Open stream files.
    pub(crate) files: Shares,
    pub(super) accounts: Shares,
    /// Recent refusals by address and kind: the time of the first one, and their number.
    refused: HashMap<(Address, &'static str), (Option<Instant>, u64)>,
}

impl Room {
    /// Creates the resources, with at most `files` open stream files.
    pub(crate) fn new(files: usize) -> Self {
        Self {
            sessions: Shares::new(MAX_SESSIONS),
            files: Shares::new(files),
            accounts: Shares::new(ACCOUNT_BYTES),
            refused: HashMap::new(),
        }
    }
}

impl Hub {
    /// Admits a session of a sender at this address. The error is the reason for a refusal.
    pub(crate) fn admit(&mut self, address: Address) -> anyhow::Result<Admission> {
        let share = self.room.sessions.take(Holder::address(address), 1).with_context(|| {
            self.counts.refused_streams += 1;
            format!("its address has its share of the {} sessions of the collector", self.room.sessions.most())
        })?;
        Ok(Admission::new(address, self.memory.sender(address), share))
    }

    fn holder(&self, session: u64) -> Option<Holder> {
        let address = self.session(session)?.address();
        Some(Holder { address, sender: Some(session) })
    }

    /// Takes the files for another stream of a session. The error is the reason for a refusal.
    pub(crate) fn files(&mut self, session: u64) -> anyhow::Result<Share> {
        let holder = self.holder(session).context("there is no session")?;
        self.files_of(holder)
    }

    /// Takes the files for the metadata of the session that is opened next.
    pub(crate) fn files_of_next(&mut self, address: Address) -> anyhow::Result<Share> {
        self.files_of(Holder { address, sender: Some(self.last_session + 1) })
    }

    fn files_of(&mut self, holder: Holder) -> anyhow::Result<Share> {
        self.room.files.take(holder, FILES_OF_STREAM).with_context(|| {
            self.counts.refused_streams += 1;
            format!(
                "it, or its address {}, has its share of the {} files that the collector may have open for streams, two for each; raise the limit \
                 on open files of the collector (`ulimit -n`, `LimitNOFILE=`) or its `--files`, or end other sessions of that address",
                holder.address,
                self.room.files.most()
            )
        })
    }

    /// Reserves `bytes` more bytes for a session's account. Returns `false` if they are not free.
    pub(super) fn account_room(&mut self, session: u64, bytes: usize) -> bool {
        let Some(holder) = self.holder(session) else { return false };
        let accounts = self.room.accounts.clone();
        let Some(streamed) = self.streamed(session) else { return false };
        match &mut streamed.account_share {
            Some(share) => share.grow(bytes),
            share => {
                *share = accounts.take(holder, bytes);
                share.is_some()
            }
        }
    }

    /// Reports a refusal, at a limited rate.
    pub(crate) fn say_refused(&mut self, address: Address, kind: &'static str, why: impl Display) {
        if self.room.refused.len() >= MAX_TOLD && !self.room.refused.contains_key(&(address, kind)) {
            return;
        }
        let (_, count) = self.room.refused.entry((address, kind)).or_default();
        *count += 1;
        if *count <= TOLD_EACH {
            self.say(format!("a {kind} was refused: {why:#} (from {address})"));
        }
    }

    /// Reports how many refusals were not reported singly.
    pub(super) fn tell_refused(&mut self, now: Instant) {
        let mut more = Vec::new();
        self.room.refused.retain(|(address, kind), (since, count)| {
            let is_due = now.saturating_duration_since(*since.get_or_insert(now)) >= REFUSAL_PAUSE;
            if is_due && *count > TOLD_EACH {
                more.push(format!("a {kind} was refused {} times more (from {address})", *count - TOLD_EACH));
            }
            !is_due
        });
        for text in more {
            self.say(text);
        }
    }

    /// Returns whether there is room for a session from this address, or for a stream of `session`.
    pub(crate) fn has_room(&self, address: Address, session: Option<u64>) -> bool {
        let sender = session.unwrap_or(self.last_session + 1);
        self.room.files.fits(Holder { address, sender: Some(sender) }, FILES_OF_STREAM)
            && (session.is_some() || self.room.sessions.fits(Holder::address(address), 1))
    }

    /// Frees resources of disconnected senders at this address. Returns whether some will be free soon. Closes the session that has waited longest
    /// for its sender, which can resume it later. If `is_urgent`, sessions that are being closed stop waiting for packets and viewers.
    pub(crate) fn free_for(&mut self, address: Address, is_urgent: bool, now: Instant) -> bool {
        let of_address = |(id, session): (&u64, &Session)| (session.address() == address).then_some(*id);
        let closing: Vec<u64> = self.sessions.iter().filter(|(_, it)| !it.is_open()).filter_map(of_address).collect();
        if is_urgent {
            for id in &closing {
                self.sessions.get_mut(id).into_iter().for_each(|session| session.is_hurried = true);
                self.tidy(*id, now);
            }
        }
        if !closing.is_empty() {
            return true;
        }
        let detached = self.sessions.iter().filter_map(|(id, session)| {
            let since = session.streamed.as_ref()?.detached?;
            of_address((id, session)).map(|id| (since, id))
        });
        let Some((_, oldest)) = detached.min() else { return false };
        self.close_session(oldest, now);
        true
    }
}

//! Free channels in this process, whose number is limited. The agent may wait for them: each closed channel wakes it.

use crate::state::wake_agent;
use std::sync::atomic::{AtomicBool, Ordering};
use tracepoint_core::channel::OpenChannel;

/// True while the agent waits for a free channel.
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

/// Returns whether this process can open this number of channels. The next closed channel wakes the agent, even if this returns true:
/// another session may need more.
pub(crate) fn has_room(channels: usize) -> bool {
    // Relaxed: `room` takes the lock under which `close` removes the channel. Either it finds the room, or `close` finds that it is
    // awaited.
    IS_AWAITED.store(true, Ordering::Relaxed);
    OpenChannel::room() >= channels
}

/// Closes a channel, whose subscriptions must have ended. Channels are closed here only.
pub(crate) fn close(channel: &OpenChannel) {
    channel.close();
    if IS_AWAITED.swap(false, Ordering::Relaxed) {
        wake_agent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::wake_for_dumps;
    use fileguard::Waker;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::sync::Arc;
    use tracepoint_core::channel::{AnonymousMemory, Channel, MAX_OPEN};

    #[test]
    fn a_session_that_needs_many_channels_is_woken_after_another_one_has_found_room() {
        let waker = Arc::new(Waker::new().expect("a pipe"));
        let _wake = wake_for_dumps(Arc::clone(&waker));
        let is_woken = || {
            let source = waker.source().expect("a pipe");
            let mut fds = [PollFd::new(&source, PollFlags::IN)];
            let ready = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("one descriptor");
            waker.clear();
            ready == 1
        };
        let close_one = || {
            let channel = Channel::discard(8 << 10).spares(1);
            let channel = OpenChannel::open(channel, [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("there is room");
            close(&channel);
        };
        assert!(!has_room(MAX_OPEN + 1) && has_room(1));
        close_one();
        assert!(is_woken());
        close_one();
        assert!(!is_woken(), "nobody waits");
    }
}

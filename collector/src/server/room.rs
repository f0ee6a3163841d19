//! Waits for files that disconnected senders still hold.

use crate::shared::ServerState;
use crate::shares::Address;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Maximum time to wait for these files, and time after which their sessions stop waiting for packets and viewers.
const LONGEST: Duration = Duration::from_secs(2);
const URGENT: Duration = Duration::from_millis(500);
/// Interval of checks.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until there is room for a session from this address, or for a stream of `session`, as long as disconnected senders of the address hold some.
/// If they hold none, returns at once, and the request is refused.
pub(super) async fn room(shared: &ServerState, address: Address, session: Option<u64>) {
    let began = Instant::now();
    loop {
        {
            let (waited, hub) = (began.elapsed(), &mut shared.hub.borrow_mut());
            let is_over = hub.has_room(address, session) || waited >= LONGEST;
            if is_over || !hub.free_for(address, waited >= URGENT, Instant::now()) {
                return;
            }
        }
        sleep(PAUSE).await;
    }
}

//! Waits for room that senders leave which are gone.

use crate::shared::Shared;
use crate::shares::Address;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long files of senders that are gone are waited for, and from when on nothing else of theirs is.
const LONGEST: Duration = Duration::from_secs(2);
const URGENT: Duration = Duration::from_millis(500);
/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until there is room for a session from this address, or for a stream of a session there, if senders of the address are gone that have
/// room. Without any, what needs the room is refused.
pub(super) async fn room(shared: &Shared, address: Address, session: Option<u64>) {
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

//! Ends the state of a connection when the connection ends.

use crate::hub::Hub;
use crate::shared::ServerState;
use std::rc::Rc;
use std::time::Instant;

/// The state of a connection. `ended` is called when the connection ends, for whatever reason.
pub(super) struct CloseOnDrop<S> {
    pub(super) shared: Rc<ServerState>,
    pub(super) state: S,
    pub(super) ended: fn(&mut S, &mut Hub, Instant),
}

impl<S> Drop for CloseOnDrop<S> {
    fn drop(&mut self) {
        (self.ended)(&mut self.state, &mut self.shared.hub.borrow_mut(), Instant::now());
    }
}

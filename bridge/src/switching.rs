//! What happens when sessions switch tracepoints: `tracing` asks again which callsites are wanted, and `log` gets a level.
//!
//! Several threads may switch at the same time. Each reads what is on, then stores what it has found; one that is late would store what is
//! no longer so. So each looks afterwards whether another one has begun meanwhile, and then does it again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tracepoint_core::private::on_switch;
use tracing_core::dispatcher::{Dispatch, WeakDispatch, with_default};

/// Sets the level of `log`, if its records are tracepoints.
static SET_LEVEL: OnceLock<fn()> = OnceLock::new();

/// How many switches have begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// The dispatchers with the layer.
static DISPATCHERS: Mutex<Vec<WeakDispatch>> = Mutex::new(Vec::new());

/// From here on.
pub(crate) fn follow() {
    on_switch(switched);
}

/// The same, and sets the level of `log` now and after each switch.
pub(crate) fn follow_with(set_level: fn()) {
    let _ = SET_LEVEL.set(set_level);
    follow();
    set_level();
}

/// There is a dispatcher with the layer.
pub(crate) fn serve(dispatch: &Dispatch) {
    let mut dispatchers = DISPATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
    dispatchers.retain(|dispatch| dispatch.upgrade().is_some());
    dispatchers.push(dispatch.downgrade());
}

fn switched() {
    // B1: pairs with itself. Whoever has begun earlier and stores later sees that there was another one; whoever begins later sees what the
    // earlier one has switched.
    let mut seen = BEGUN.fetch_add(1, Ordering::AcqRel) + 1;
    loop {
        if let Some(set_level) = SET_LEVEL.get() {
            set_level();
        }
        ask_again();
        let now = BEGUN.load(Ordering::Acquire);
        if now == seen {
            break;
        }
        seen = now;
    }
}

/// Has `tracing` ask all dispatchers again. As long as there has been one only, it asks that of the calling thread, which need not be the one
/// that has it.
fn ask_again() {
    let dispatchers = DISPATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let dispatch = dispatchers.iter().find_map(WeakDispatch::upgrade);
    drop(dispatchers);
    if let Some(dispatch) = dispatch {
        with_default(&dispatch, tracing_core::callsite::rebuild_interest_cache);
    }
}

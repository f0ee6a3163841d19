//! What happens when sessions switch tracepoints: `tracing` asks again which callsites are wanted, and `log` gets a level.

use std::sync::OnceLock;
use tracepoint_core::private::on_switch;

/// Sets the level of `log`, if its records are tracepoints.
static SET_LEVEL: OnceLock<fn()> = OnceLock::new();

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

fn switched() {
    if let Some(set_level) = SET_LEVEL.get() {
        set_level();
    }
    tracing_core::callsite::rebuild_interest_cache();
}

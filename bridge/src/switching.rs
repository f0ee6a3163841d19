//! Handles switches of tracepoints by sessions: makes `tracing` query interests again, and sets the level of `log`.
//!
//! `tracing` caches the interest of each callsite and queries it again only on request. Two threads that query at the same time can store the results
//! in either order, so that an old one stays. The interest `never` is therefore returned only to threads of this module, each of which queries again
//! if another one has begun meanwhile. Any other thread, such as one that has reached a new callsite, gets `sometimes`: `tracing` then asks at each
//! event, and after enough of these queries, a thread queries all callsites.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use tracepoint_core::internal::{on_switch, update_lock};
use tracing_core::dispatcher::{Dispatch, WeakDispatch, with_default};

/// Sets the level of `log`, once its records are recorded.
static SET_LEVEL: OnceLock<fn()> = OnceLock::new();

/// Number of switches begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// The dispatchers with the layer. Locked only under the update lock, which is held around a fork, so that no child finds it locked.
static DISPATCHERS: Mutex<Vec<WeakDispatch>> = Mutex::new(Vec::new());

/// Number of queries at events that cost about as much as a thread that ends them.
const MANY: u32 = 4096;

/// Number of queries since the last such thread ended.
static QUESTIONS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Makes `tracing` query interests after each switch from here on.
pub(crate) fn follow() {
    on_switch(switched);
}

/// Like [`follow`], and also sets the level of `log` now and after each switch.
pub(crate) fn follow_with(set_level: fn()) {
    let _ = SET_LEVEL.set(set_level);
    follow();
    set_level();
}

/// Adds a dispatcher that has the layer.
pub(crate) fn serve(dispatch: &Dispatch) {
    // Dropped after unlocking: a reference may be the last one by then, and dropping it runs code of the program.
    let mut alive = Vec::new();
    let locked = update_lock();
    let mut dispatchers = DISPATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
    dispatchers.retain(|dispatch| dispatch.upgrade().map(|dispatch| alive.push(dispatch)).is_some());
    dispatchers.push(dispatch.downgrade());
    drop(dispatchers);
    drop(locked);
}

/// Returns whether this thread is querying all callsites because of a switch. It sees the current state, and no older result is stored after its own.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.get()
}

/// Counts a query at an event about a callsite that is off and has not been given `never`.
#[cold]
pub(crate) fn asked_at_event() {
    // Relaxed: only the number counts.
    if QUESTIONS.fetch_add(1, Ordering::Relaxed) + 1 == MANY {
        // In a separate thread: this one may be inside other layers that hold locks, and those layers are queried as well.
        let ask = || {
            tracepoint_core::internal::leave_inherited_scheduling();
            switched();
            QUESTIONS.store(0, Ordering::Relaxed);
        };
        if thread::Builder::new().name("tracepoint-interest".to_owned()).spawn(ask).is_err() {
            QUESTIONS.store(0, Ordering::Relaxed);
        }
    }
}

fn switched() {
    // SeqCst, here and in the load below: each pairs with the other one in another thread, around the SeqCst stores by which `tracing` keeps results.
    // Of two threads that switch, the one that begins later sees both switches. If the other one stores a result after it, that thread's load below
    // comes after this increment in the total order, so it queries again.
    let mut seen = BEGUN.fetch_add(1, Ordering::SeqCst) + 1;
    loop {
        if let Some(set_level) = SET_LEVEL.get() {
            set_level();
        }
        ask_again();
        let now = BEGUN.load(Ordering::SeqCst);
        if now == seen {
            break;
        }
        seen = now;
    }
}

/// Makes `tracing` query all dispatchers again. As long as there was only one, `tracing` queries the calling thread's, which need not be the one with
/// the layer.
fn ask_again() {
    let locked = update_lock();
    let dispatchers = DISPATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
    let dispatch = dispatchers.iter().find_map(WeakDispatch::upgrade);
    drop(dispatchers);
    drop(locked);
    if let Some(dispatch) = dispatch {
        let was_asking = IS_ASKING.replace(true);
        with_default(&dispatch, tracing_core::callsite::rebuild_interest_cache);
        IS_ASKING.set(was_asking);
    }
}

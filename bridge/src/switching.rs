//! What happens when sessions switch tracepoints: `tracing` asks again which callsites are wanted, and `log` gets a level.
//!
//! `tracing` keeps what it was answered for each callsite, and asks again only when it is told to. Two threads that ask at the same time can
//! store their answers in either order, so that an old one stays. An answer that a callsite is not wanted is therefore given only to the threads of this
//! module, each of which asks once more if another one has begun meanwhile. Any other thread, such as one that has reached a new callsite, is answered
//! `sometimes`: `tracing` then asks at each event, and when it has done so often enough, a thread asks about all callsites.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use tracepoint_core::private::{on_switch, update_lock};
use tracing_core::dispatcher::{Dispatch, WeakDispatch, with_default};

/// Sets the level of `log`, if its records are tracepoints.
static SET_LEVEL: OnceLock<fn()> = OnceLock::new();

/// How many switches have begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// The dispatchers with the layer. Locked under the update lock, which is held around a fork, so that no child finds it locked.
static DISPATCHERS: Mutex<Vec<WeakDispatch>> = Mutex::new(Vec::new());

/// So many questions at events cost about as much as a thread that ends them.
const MANY: u32 = 4096;

/// How many there were since the last such thread ended.
static QUESTIONS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Has `tracing` asked again after each switch from here on.
pub(crate) fn follow() {
    on_switch(switched);
}

/// Does what [`follow`] does, and sets the level of `log` now and after each switch.
pub(crate) fn follow_with(set_level: fn()) {
    let _ = SET_LEVEL.set(set_level);
    follow();
    set_level();
}

/// Adds a dispatcher that has the layer.
pub(crate) fn serve(dispatch: &Dispatch) {
    // Dropped without the locks: one of them may be the last reference by then, and dropping it runs code of the program.
    let mut alive = Vec::new();
    let locked = update_lock();
    let mut dispatchers = DISPATCHERS.lock().unwrap_or_else(PoisonError::into_inner);
    dispatchers.retain(|dispatch| dispatch.upgrade().map(|dispatch| alive.push(dispatch)).is_some());
    dispatchers.push(dispatch.downgrade());
    drop(dispatchers);
    drop(locked);
}

/// Whether this thread asks about all callsites because of a switch: it sees what is on, and no later answer is older than its own.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.get()
}

/// `tracing` has asked at an event about a callsite that is off, since it was not told `never`.
#[cold]
pub(crate) fn asked_at_event() {
    // Relaxed: only the number counts.
    if QUESTIONS.fetch_add(1, Ordering::Relaxed) + 1 == MANY {
        // In a thread of its own, because this one may be inside other layers that hold locks, and they are asked, too.
        let ask = || {
            tracepoint_core::private::leave_inherited_scheduling();
            switched();
            QUESTIONS.store(0, Ordering::Relaxed);
        };
        if thread::Builder::new().name("tracepoint-interest".to_owned()).spawn(ask).is_err() {
            QUESTIONS.store(0, Ordering::Relaxed);
        }
    }
}

fn switched() {
    // SeqCst, here and in the load below: each pairs with the other one in another thread, around the SeqCst stores by which `tracing` keeps
    // answers. Of two threads that switch, the one that begins later sees what both have switched. If the other one stores an answer after it,
    // its load below comes after this increment in the total order, so that it asks again.
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

/// Has `tracing` ask all dispatchers again. As long as there has been one only, it asks that of the calling thread, which need not be the one
/// that has it.
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

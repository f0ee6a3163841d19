//! The user context of a future, which threads adopt while they poll it.

use super::{get, set};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Wraps a future so that during each poll [`Context::User`](super::Context::User) is `value`, on whichever thread. Afterwards the thread has its
/// previous value again. If the future itself [sets](set) a value, its later polls keep it.
///
/// Tasks started by the future do not inherit the value; pass it on with `spawn(scope(get(), task))`.
///
/// Costs three stores per poll.
///
/// ```
/// # use tracepoint_ring as tracepoint;
/// use tracepoint::context;
///
/// async fn handle() {
///     assert_eq!(context::get(), 7);
/// }
///
/// let task = context::scope(7, handle()); // `tokio::spawn(task)`
/// # let task = std::pin::pin!(task);
/// # let _ = task.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
/// # assert_eq!(context::get(), 0);
/// ```
pub fn scope<F: Future>(value: u64, future: F) -> Scope<F> {
    Scope { value, future }
}

/// A future with a user context, created by [`scope`].
#[derive(Clone, Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Scope<F> {
    value: u64,
    future: F,
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is pinned with the whole: nothing moves it, there is no `Drop`, and the whole is `Unpin` only if the future is. The
        // number is never pinned.
        let (future, value) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.value)
        };
        let value = RestoreOnDrop { before: get(), value };
        set(*value.value);
        future.poll(context)
    }
}

/// Restores the thread's value, even if the poll unwinds.
struct RestoreOnDrop<'f> {
    before: u64,
    value: &'f mut u64,
}

impl Drop for RestoreOnDrop<'_> {
    fn drop(&mut self) {
        *self.value = get();
        set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Waker;

    #[test]
    fn a_future_has_its_value_on_every_thread() {
        set(1);
        let inner = std::future::poll_fn(|_| {
            set(get() + 1);
            if get() < 12 { Poll::Pending } else { Poll::Ready(get()) }
        });
        let mut task = pin!(scope(10, inner));
        let mut poll = move || task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!((poll(), get()), (Poll::Pending, 1));
        std::thread::scope(|threads| {
            let other = threads.spawn(|| (poll(), get()));
            assert_eq!(other.join().expect("no panic"), (Poll::Ready(12), 0));
        });
    }

    #[test]
    fn a_panic_restores_the_value() {
        set(3);
        let mut task = Box::pin(scope(4, async { std::panic::resume_unwind(Box::new(())) }));
        let poll = std::panic::AssertUnwindSafe(|| {
            let _: Poll<()> = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        assert!(std::panic::catch_unwind(poll).is_err());
        assert_eq!(get(), 3);
    }
}

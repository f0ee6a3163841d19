//! A minimal executor, and a future that is not ready at first.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// Runs a future to completion on this thread.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// Ready with its value at the second poll.
pub(crate) struct Later<T>(pub(crate) T, pub(crate) bool);

impl<T: Copy> Future for Later<T>
where
    Self: Unpin,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        if std::mem::replace(&mut self.1, true) { Poll::Ready(self.0) } else { Poll::Pending }
    }
}

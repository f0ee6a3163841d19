//! The counterpart on systems other than Linux, where Ctrl-C ends this program at once.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// No request arrives.
#[derive(Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    #[expect(clippy::unnecessary_wraps, reason = "the counterpart may fail")]
    pub(crate) fn once() -> Result<Self, Failure> {
        Ok(Self::default())
    }

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    #[expect(clippy::unused_self, reason = "the counterpart has a state")]
    pub(crate) const fn is_requested(&self) -> bool {
        false
    }
}

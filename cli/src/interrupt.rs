//! Requests to end: Ctrl-C and the signals that mean the same.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked this program to end.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles SIGINT and SIGTERM as a request. The second signal ends the program at once.
    pub(crate) fn once() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&requested)).map_err(Failure::Signal)?;
            flag::register(signal, Arc::clone(&requested)).map_err(Failure::Signal)?;
        }
        Ok(Self(requested))
    }

    /// Handles SIGINT, SIGTERM and SIGHUP as a request, however many come: the program has to clean up first.
    pub(crate) fn always() -> Result<Self, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&requested)).map_err(Failure::Signal)?;
        }
        Ok(Self(requested))
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

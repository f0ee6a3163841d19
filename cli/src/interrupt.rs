//! Ctrl-C, and being asked to end.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody has asked this program to end.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on Ctrl-C and SIGTERM ask. The second time they end the program, as if it knew no signals.
    pub(crate) fn once() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&asked)).map_err(Failure::Signal)?;
            flag::register(signal, Arc::clone(&asked)).map_err(Failure::Signal)?;
        }
        Ok(Self(asked))
    }

    /// From here on Ctrl-C, SIGTERM and the end of the terminal ask, and never more than that: there is something to be put in order.
    pub(crate) fn always() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&asked)).map_err(Failure::Signal)?;
        }
        Ok(Self(asked))
    }

    /// Whether it is to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

//! `tracing`: callsites with a cached interest.

use crate::kernel::Compiled;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};
use std::fmt::Debug;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// `tracing::trace!`.
#[derive(Clone, Copy, Debug)]
pub struct Tracing;

impl Site for Tracing {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        tracing::trace!(a, b, c);
    }
}

/// Whether the program's own subscriber wants events.
static WANTED: AtomicBool = AtomicBool::new(false);

/// A subscriber that sums the values up and stores nothing.
#[derive(Clone, Copy)]
enum Sink {
    /// The program's: wants events if [`WANTED`].
    Global,
    /// Hints that no level is of interest.
    LevelOff,
    /// Would take any level, and refuses each callsite.
    Never,
}

impl Subscriber for Sink {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        match self {
            Self::Global if WANTED.load(Ordering::Relaxed) => Interest::always(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        matches!(self, Self::Global) && WANTED.load(Ordering::Relaxed)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        match self {
            Self::Global if WANTED.load(Ordering::Relaxed) => Some(LevelFilter::TRACE),
            Self::Global | Self::LevelOff => Some(LevelFilter::OFF),
            Self::Never => Some(LevelFilter::TRACE),
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut sum = Sum(0);
        event.record(&mut sum);
        tally::add(0, 0, sum.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Sum(i64);

impl Visit for Sum {
    fn record_i64(&mut self, _: &Field, value: i64) {
        self.0 = self.0.wrapping_add(value);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// Makes it the program's subscriber, which finds its events faster than one that is installed for a while, and cannot be
/// removed: until it is wanted it asks for nothing.
const COUNT: Arm = || {
    static INIT: Once = Once::new();
    INIT.call_once(|| tracing::subscriber::set_global_default(Sink::Global).expect("nobody else sets one"));
    let want = |wanted| {
        WANTED.store(wanted, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    };
    want(true);
    Ok(Armed::until(move || want(false)))
};

fn installed(sink: Sink) -> Armed {
    let guard = tracing::subscriber::set_default(sink);
    Armed::until(move || {
        drop(guard);
        // The highest level of interest is only computed anew when a subscriber arrives, and without one it would be TRACE:
        // other than in a program that never had a subscriber.
        drop(tracing::subscriber::set_default(Sink::LevelOff));
    })
}

const OFF: Variant = Variant {
    name: "tracing",
    mode: Mode::Off,
    does: "tracing::trace!, no subscriber",
    kernels: Compiled::of::<Tracing>(),
    arm: AS_IT_IS,
    count: COUNT,
    proof: Proof::Values,
    tells: false,
    hold: Hold::Sample,
    limit: u64::MAX,
};

/// Off in three ways, and on with a subscriber that keeps nothing.
pub const VARIANTS: &[Variant] = &[
    OFF,
    Variant {
        name: "tracing-level-off",
        does: "tracing::trace!, a subscriber whose level hint is OFF",
        arm: || Ok(installed(Sink::LevelOff)),
        ..OFF
    },
    Variant {
        name: "tracing-never",
        does: "tracing::trace!, a subscriber that refuses the callsite",
        arm: || Ok(installed(Sink::Never)),
        ..OFF
    },
    Variant {
        name: "tracing-visit",
        mode: Mode::On,
        tells: true,
        does: "a subscriber that visits the fields, counts and sums up",
        arm: COUNT,
        ..OFF
    },
];

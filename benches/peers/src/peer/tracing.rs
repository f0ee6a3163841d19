//! `tracing`: callsites with a cached interest. [`super::tracing_record`] has the variants that record.

use crate::kernel::Compiled;
use crate::peer::tracing_record;
use crate::peer::workload;
use crate::site::Site;
use crate::tally;
use crate::variant::{AS_IT_IS, Arm, Armed, Hold, Mode, Proof, Variant};
use std::fmt::Debug;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// `tracing::trace!` with text.
#[derive(Clone, Copy, Debug)]
pub struct TracingText;

impl Site for TracingText {
    #[inline(always)]
    fn event(a: i32, b: i32, c: i64) {
        tracing::trace!(name = workload::name(), n = workload::sum(a, b, c));
    }
}

/// The behaviour of the program's own subscriber: a [`Wanted`].
static WANTED: AtomicU8 = AtomicU8::new(Wanted::Nothing as u8);

/// The behaviour of the program's own subscriber.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    /// Refuses events.
    Nothing,
    /// Visits the fields.
    Sum,
    /// Keeps their bytes in a ring.
    Ring,
    /// Formats them as a line of text.
    Line,
}

fn wanted() -> bool {
    WANTED.load(Ordering::Relaxed) != Wanted::Nothing as u8
}

/// The subscribers that are used alternately.
#[derive(Clone, Copy)]
enum Sink {
    /// The program's own: behaves as [`WANTED`] says.
    Global,
    /// Hints that it takes no level.
    LevelOff,
    /// Takes all levels, and refuses each callsite.
    Never,
}

impl Subscriber for Sink {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        match self {
            Self::Global if wanted() => Interest::always(),
            _ => Interest::never(),
        }
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        matches!(self, Self::Global) && wanted()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        match self {
            Self::Global if wanted() => Some(LevelFilter::TRACE),
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
        const RING: u8 = Wanted::Ring as u8;
        const LINE: u8 = Wanted::Line as u8;
        match WANTED.load(Ordering::Relaxed) {
            RING => tracing_record::keep(event),
            LINE => tracing_record::print(event),
            _ => {
                let mut sum = Sum(0);
                event.record(&mut sum);
                tally::add(0, 0, sum.0);
            }
        }
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

const COUNT: Arm = || Ok(want(Wanted::Sum));

/// Installs our subscriber as the global default, which receives events faster than a scoped one. It cannot be removed, so it
/// takes no events until a variant needs it.
pub(super) fn want(what: Wanted) -> Armed {
    static INIT: Once = Once::new();
    INIT.call_once(|| tracing::subscriber::set_global_default(Sink::Global).expect("no other subscriber is set"));
    let want = |wanted| {
        WANTED.store(wanted as u8, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    };
    want(what);
    Armed::until(move || want(Wanted::Nothing))
}

fn installed(sink: Sink) -> Armed {
    let guard = tracing::subscriber::set_default(sink);
    Armed::until(move || {
        drop(guard);
        // The maximum level is only recomputed when a subscriber is installed; without one it would stay at TRACE, unlike in a
        // program that never had a subscriber.
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
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: None,
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
        counts_losses: true,
        does: "a subscriber that visits the fields, counts and sums up",
        arm: COUNT,
        ..OFF
    },
];

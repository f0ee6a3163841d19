//! Tracepoints: typed hooks, each with a key, a list of probes and, if it has a field block, a marker.
//!
//! The functions that an enabled site calls are in [`fire`](crate::fire).

use crate::error::RegisterError;
use crate::getters::getters;
use crate::location::Location;
use crate::marker::Marker;
use crate::probe::set::{ArgumentsType, ProbeSet};
use crate::probe::{DEFAULT_PRIORITY, Dynamic, Probe};
use crate::site::SiteSwitchError;
use std::any::Any;
use std::fmt;
use tracepoint_ring::Level;
use tracepoint_ring::thread::ThreadSlot;
use tracepoint_ring::update::UpdateGuard;

/// An argument of a tracepoint as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Argument {
    /// The name.
    pub name: &'static str,
    /// The type as written.
    pub ty: &'static str,
}

/// The static description of a tracepoint. Later versions only append to it; readers recognise a version by `size`.
#[derive(Debug)]
#[repr(C)]
#[non_exhaustive]
pub struct TracepointDescriptor {
    /// The size of this structure in bytes.
    pub size: u32,
    /// The version of this structure: 1.
    pub version: u32,
    /// Registers the function pointer in the `Any`; `None` if it does not have the tracepoint's signature.
    register: fn(&dyn Any, i32) -> Option<Result<u64, SiteSwitchError>>,
    /// The type name of the signature.
    signature: fn() -> &'static str,
    /// The declared properties.
    parts: TracepointParts,
}

/// The declared properties of a tracepoint.
#[derive(Clone, Copy, Debug)]
pub struct TracepointParts {
    /// The part of the name before the colon.
    pub provider: &'static str,
    /// The part of the name after the colon.
    pub name: &'static str,
    /// The importance of the event.
    pub level: Level,
    /// The arguments, in order.
    pub arguments: &'static [Argument],
    /// The condition as written; empty if there is none.
    pub condition: &'static str,
    /// The doc comment; empty if there is none.
    pub doc: &'static str,
    /// Where it was declared.
    pub location: Location,
    /// The marker that the field block declares; `None` for a bare hook.
    pub marker: Option<&'static Marker>,
}

/// A typed hook. One static per declaration.
pub struct Tracepoint {
    descriptor: TracepointDescriptor,
    pub(crate) probes: &'static ProbeSet,
}

impl fmt::Debug for Tracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracepoint")
            .field("name", &self.full_name())
            .field("is_on", &self.is_on())
            .finish_non_exhaustive()
    }
}

getters! { Tracepoint, &self => self.descriptor.parts;
    /// The part of the name before the colon.
    provider: &'static str,
    /// The part of the name after the colon.
    name: &'static str,
    /// The importance of the event.
    level: Level,
    /// The arguments, in order.
    arguments: &'static [Argument],
    /// The condition as written; empty if there is none.
    condition: &'static str,
    /// The doc comment above the declaration; empty if there is none.
    doc: &'static str,
    /// Where it was declared.
    location: Location,
    /// The marker that the field block declares; `None` for a bare hook.
    marker: Option<&'static Marker>,
}

impl Tracepoint {
    /// Built by the macros only.
    #[doc(hidden)]
    pub const fn new<T: TracepointType>(parts: TracepointParts, probes: &'static ProbeSet) -> Self {
        Self {
            descriptor: TracepointDescriptor {
                size: size_of::<TracepointDescriptor>() as u32,
                version: 1,
                parts,
                register: register_any::<T>,
                signature: std::any::type_name::<T::Signature>,
            },
            probes,
        }
    }

    /// Returns whether the sites enter the cold path: a probe is connected, or the marker has a subscriber.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.probes.key().is_on()
    }

    /// The description, for readers of the object's tables.
    #[doc(hidden)]
    pub const fn descriptor(&self) -> &TracepointDescriptor {
        &self.descriptor
    }

    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider(), self.name())
    }

    /// Number of probe calls that panicked, each of which disconnected its probe; plus the number of condition evaluations that panicked.
    pub fn probe_panics(&self) -> u64 {
        self.probes.panics()
    }

    /// Number of probe calls that were skipped because probes were nested [`MAX_PROBE_DEPTH`](crate::MAX_PROBE_DEPTH) deep.
    pub fn probes_skipped(&self) -> u64 {
        self.probes.skipped()
    }

    /// Number of connected probes, without those disconnected by a panic.
    pub fn probe_count(&self) -> usize {
        self.probes.count()
    }

    /// Registers a probe whose type is known only at run time; `S` is a function pointer with the tracepoint's signature.
    ///
    /// ```
    /// # tracepoint::define_trace! { provider = "doc"; grown(size: u64); }
    /// fn probe(size: u64) {
    ///     println!("grown to {size}");
    /// }
    /// let probe = tracepoint::find("doc:grown")?.register::<fn(u64)>(probe)?;
    /// probe.unregister();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RegisterError::Signature`] if `S` is not the tracepoint's signature; [`RegisterError::Switch`] if the sites cannot be
    /// switched on.
    pub fn register<S: Any>(&'static self, probe: S) -> Result<Probe<Dynamic>, RegisterError> {
        self.register_prio(DEFAULT_PRIORITY, probe)
    }

    /// [`register`](Self::register) with a priority; probes with a higher priority run earlier.
    ///
    /// # Errors
    ///
    /// The same as for `register`.
    pub fn register_prio<S: Any>(&'static self, priority: i32, probe: S) -> Result<Probe<Dynamic>, RegisterError> {
        match (self.descriptor.register)(&probe, priority) {
            Some(ticket) => Ok(Probe::new(self.probes, ticket?)),
            None => Err(RegisterError::Signature {
                tracepoint: self.full_name(),
                expected: signature_text(self.descriptor.signature),
                found: signature_text(std::any::type_name::<S>),
            }),
        }
    }
}

/// The name of a signature as in source code, without elided lifetimes.
fn signature_text(type_name: fn() -> &'static str) -> String {
    type_name().replace("'_ ", "")
}

/// The result of handling an event by the marker of a tracepoint, for the fast path. The full path does not use it.
///
/// There are two results of a delivered event because the slot is in a register in only one of them. With a single result, an event would keep
/// the slot across calls (10 more instructions with a text), or look it up again at its end (3 more of 81 in a library, where a thread-local
/// needs a call; counted by callgrind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Not handled: the event is not suitable for this path, and nothing was evaluated.
    None,
    /// The subscribers have accounted for the event.
    Delivered,
    /// As `Delivered`, or the evaluation panicked; in addition, the section entered by the fast path has been left.
    DeliveredAndExited,
}

/// The type of a tracepoint. Implemented by the macros.
pub trait TracepointType: ArgumentsType + Sized {
    /// The function pointer type of a probe.
    #[doc(hidden)]
    type Signature: Copy + Send + Sync + 'static;
    /// The static of the tracepoint.
    #[doc(hidden)]
    fn tracepoint() -> &'static Tracepoint;
    /// Evaluates the condition of the declaration.
    #[doc(hidden)]
    fn holds(args: &Self::Args<'_>) -> bool;
    /// True if the declaration has no condition. A tracepoint with a condition has no fast path.
    #[doc(hidden)]
    const IS_UNCONDITIONAL: bool;
    /// Passes the values of the field block to the marker stage, on the fast path or the full path.
    #[doc(hidden)]
    #[inline(always)]
    fn mark<const FAST: bool>(_slot: &'static ThreadSlot, _args: &Self::Args<'_>) -> Dispatch {
        Dispatch::None
    }
    /// Calls a probe that is a function pointer.
    #[doc(hidden)]
    fn call(probe: Self::Signature, args: &Self::Args<'_>);
}

fn register_any<T: TracepointType>(probe: &dyn Any, priority: i32) -> Option<Result<u64, SiteSwitchError>> {
    let probe = *probe.downcast_ref::<T::Signature>()?;
    Some(T::tracepoint().probes.connect::<T, _>(priority, move |args: &T::Args<'_>| T::call(probe, args)))
}

/// Registers a closure. The generated `register_trace_x` calls this.
#[doc(hidden)]
pub fn register<T, F>(priority: i32, probe: F) -> Result<Probe<T>, RegisterError>
where
    T: TracepointType,
    F: for<'a, 'b> Fn(&'b T::Args<'a>) + Send + Sync + 'static,
{
    let probes = T::tracepoint().probes;
    Ok(Probe::new(probes, probes.connect::<T, F>(priority, probe)?))
}

/// Selects fast path or full path for the events of a tracepoint. Called after each change of its probes.
#[doc(hidden)]
pub fn probes_changed<T: TracepointType>(locked: &UpdateGuard<'_>) {
    if let Some(marker) = T::tracepoint().marker() {
        marker.choose_path(locked);
    }
}

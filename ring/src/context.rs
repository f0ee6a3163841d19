//! Contexts: what is true of the thread at an event, and what the event itself does not say.
//!
//! A [channel](crate::channel::Channel::context) is asked for them; each of its records then begins with them, before the fields, as the
//! *event context* of its stream class. A channel that was asked for none pays nothing; one that was goes the long way through the marker
//! stage, at some 400 instructions more.

mod stack;
mod thread;
mod values;

pub(crate) use values::{ContextValues, with_callers};

use crate::field::{Base, ByteOrder, FieldDescriptor, FieldType, IntegerType};
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that each record of a channel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Context {
    /// `vpid`: the process id, in its own namespace. 4 bytes.
    Process,
    /// `vtid`: the kernel's thread id, in its own namespace. 4 bytes.
    Thread,
    /// `procname`: the name of the thread when it fired its first event into a channel that asked for it; up to 15 bytes and a NUL.
    /// That event makes a system call. Empty where threads have no names (Linux has).
    ThreadName,
    /// `cpu_id`: the processor, by `getcpu`, which is no system call on x86-64 and most others. 4 bytes; all ones where it is not known.
    Cpu,
    /// `user`: the number that the thread last [set]. 8 bytes.
    User,
    /// `callstack`: where the functions go on that led to the event, the innermost first, the first few of them the tracepoint's own; 16 of
    /// them unless the channel [says otherwise](crate::channel::Channel::call_stack_depth). 8 bytes each, and 4.
    ///
    /// For programs that were built with `-C force-frame-pointers=yes`, on x86-64 and aarch64 Linux; what others get is empty, or has
    /// no meaning. Nothing outside the thread's stack is read. A thread's first event looks for that in `/proc/self/maps`; handlers and
    /// coroutines on stacks of their own have none.
    CallStack,
}

impl Context {
    /// All contexts, in the order of the record.
    pub const ALL: &'static [Self] =
        &[Self::Process, Self::Thread, Self::ThreadName, Self::Cpu, Self::User, Self::CallStack];

    /// The field that it is.
    pub const fn field(self) -> FieldDescriptor {
        let (name, ty) = match self {
            Self::Process => ("vpid", unsigned(32)),
            Self::Thread => ("vtid", unsigned(32)),
            Self::ThreadName => ("procname", FieldType::Text),
            Self::Cpu => ("cpu_id", unsigned(32)),
            Self::User => ("user", unsigned(64)),
            Self::CallStack => ("callstack", FieldType::Sequence { element: &ADDRESS }),
        };
        FieldDescriptor { name, ty, doc: "" }
    }
}

const ADDRESS: FieldType =
    FieldType::Integer(IntegerType { bits: 64, signed: false, base: Base::Hexadecimal, order: ByteOrder::Little });

const fn unsigned(bits: u8) -> FieldType {
    FieldType::Integer(IntegerType { bits, signed: false, base: Base::Decimal, order: ByteOrder::Little })
}

/// Some contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contexts {
    /// A bit for each.
    which: u8,
    /// How many callers a call stack has at most.
    depth: u8,
}

impl Contexts {
    pub(crate) const NONE: Self = Self { which: 0, depth: 16 };

    pub(crate) const fn with(self, context: Context) -> Self {
        Self { which: self.which | 1 << context as u8, ..self }
    }

    pub(crate) fn with_depth(self, callers: usize) -> Self {
        Self { depth: callers.clamp(1, stack::MAX_DEPTH) as u8, ..self }
    }

    #[inline(always)]
    pub(crate) const fn depth(self) -> usize {
        self.depth as usize
    }

    pub(crate) const fn contains(self, context: Context) -> bool {
        self.which & 1 << context as u8 != 0
    }

    #[inline(always)]
    pub(crate) const fn is_empty(self) -> bool {
        self.which == 0
    }

    /// Their fields, in the order of the record.
    pub(crate) fn fields(self) -> Vec<FieldDescriptor> {
        Context::ALL.iter().filter(|context| self.contains(**context)).map(|context| context.field()).collect()
    }
}

thread_local! {
    // Const-initialised and without a destructor: one store, also in signal handlers. Atomic for their sake, never shared.
    static USER: AtomicU64 = const { AtomicU64::new(0) };
}

/// From here on the events of the calling thread have this number as their [`Context::User`]: a request, a task, a transaction. 0 until
/// the first call.
///
/// Costs one store. May be called in signal handlers. An executor that moves tasks between threads sets it whenever a task goes on:
/// `examples/tokio.rs` does.
#[inline]
pub fn set(value: u64) {
    USER.with(|user| user.store(value, Ordering::Relaxed));
}

/// What the calling thread last [set].
#[inline]
pub fn get() -> u64 {
    USER.with(|user| user.load(Ordering::Relaxed))
}

//! Contexts: properties of the thread or the process at the time of an event.
//!
//! If a [channel](crate::channel::Channel::context) is configured with contexts, each of its records begins with them, before the fields, as
//! the *event context* of its stream class. Channels without contexts have no cost; with contexts, events take the full path, which
//! costs about 400 instructions more.

mod scope;
mod stack;
mod thread;
mod values;

pub use scope::{Scope, scope};
pub(crate) use values::{ContextValues, with_callers};

use crate::field::{Base, ByteOrder, FieldDescriptor, FieldType, IntegerType};
use std::sync::atomic::{AtomicU64, Ordering};

/// A context in each record of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Context {
    /// `vpid`: the process id, in its own namespace. 4 bytes.
    Process,
    /// `vtid`: the kernel's thread id, in its own namespace. 4 bytes.
    Thread,
    /// `procname`: the name of the thread when it fired its first event into a channel with this context; up to 15 bytes and a NUL. That
    /// event makes a system call. Empty on systems other than Linux.
    ThreadName,
    /// `cpu_id`: the processor, from `getcpu`, which is not a system call on x86-64 and most others. 4 bytes; all ones if unknown.
    Cpu,
    /// `user`: the number that the thread last [set]. 8 bytes.
    User,
    /// `callstack`: the return addresses of the calls that led to the event, innermost first: in the function with the site, in its
    /// caller, and so on. For an event of a span, addresses in the code of the span come first, and on aarch64 some of the tracepoint's own. At most
    /// 16 addresses, or the channel's [depth](crate::channel::Channel::call_stack_depth). 4 bytes, plus 8 per address.
    ///
    /// For programs built with `-C force-frame-pointers=yes`, on x86-64 and aarch64 Linux; otherwise it is empty or meaningless.
    /// Only the thread's own stack is read; its first event looks up the bounds in `/proc/self/maps`. Empty for signal handlers and coroutines on
    /// separate stacks.
    CallStack,
}

impl Context {
    /// All contexts, in the order of the record.
    pub const ALL: &'static [Self] =
        &[Self::Process, Self::Thread, Self::ThreadName, Self::Cpu, Self::User, Self::CallStack];

    /// The field of this context.
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

/// A set of contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contexts {
    /// One bit for each context.
    which: u8,
    /// Maximum number of callers in a call stack.
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

    /// The fields of the contexts, in the order of the record.
    pub(crate) fn fields(self) -> Vec<FieldDescriptor> {
        Context::ALL.iter().filter(|context| self.contains(**context)).map(|context| context.field()).collect()
    }
}

thread_local! {
    // Const-initialised and without a destructor: one store, also in signal handlers. Atomic because handlers on the thread access it.
    static USER: AtomicU64 = const { AtomicU64::new(0) };
}

/// Sets the [`Context::User`] of the calling thread's events: the number of a request, a task, a transaction. 0 until the first call.
///
/// Costs one store. Safe in signal handlers. For a future that may move between threads, use [`scope`].
#[inline]
pub fn set(value: u64) {
    USER.with(|user| user.store(value, Ordering::Relaxed));
}

/// The number that the calling thread [set] last.
#[inline]
pub fn get() -> u64 {
    USER.with(|user| user.load(Ordering::Relaxed))
}

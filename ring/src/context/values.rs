//! The values of an event's contexts, which precede its fields in the record.

use super::stack::{self, MAX_DEPTH};
use super::thread::{self, Name};
use super::{Context, Contexts, get};
use crate::field::sealed::Sealed;
use crate::field::{FieldValue, Fields, PathBytes, Sequence, Value, Writer};
use crate::thread::ThreadSlot;

/// The contexts of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextValues<'s> {
    which: Contexts,
    process: u32,
    thread: u32,
    name: Name,
    cpu: u32,
    user: u64,
    callers: &'s [u64],
}

/// Calls `then` with the call stack of the site whose event the thread is processing, or with an empty one if the context is not configured.
#[inline(always)]
pub(crate) fn with_callers(which: Contexts, slot: &ThreadSlot, then: impl Fn(&[u64])) {
    if which.contains(Context::CallStack) {
        let mut callers = [0; MAX_DEPTH];
        let callers = &mut callers[..usize::from(which.depth).min(MAX_DEPTH)];
        let count = stack::walk(slot.site(), callers);
        then(&callers[..count]);
    } else {
        then(&[]);
    }
}

impl<'s> ContextValues<'s> {
    /// The contexts of the calling thread, whose slot is `slot`, in the process with this id.
    pub(crate) fn now(which: Contexts, process: u32, slot: &ThreadSlot, callers: &'s [u64]) -> Self {
        let name = if which.contains(Context::ThreadName) { thread::name() } else { Name::NONE };
        Self {
            which,
            process,
            thread: slot.tid(),
            name,
            cpu: if which.contains(Context::Cpu) { thread::cpu() } else { 0 },
            user: get(),
            callers,
        }
    }

    fn has(&self, context: Context) -> bool {
        self.which.contains(context)
    }

    /// The name as bytes; it is valid UTF-8.
    fn name(&self) -> PathBytes<'_> {
        PathBytes(self.name.bytes())
    }
}

impl Sealed for ContextValues<'_> {}

impl Fields for ContextValues<'_> {
    // Contexts are not fields of the event, and are not looked up by index.
    const COUNT: usize = 0;

    #[inline]
    fn encoded_size(&self) -> usize {
        let size = |context, size: usize| if self.has(context) { size } else { 0 };
        size(Context::Process, self.process.encoded_size())
            + size(Context::Thread, self.thread.encoded_size())
            + size(Context::ThreadName, self.name().encoded_size())
            + size(Context::Cpu, self.cpu.encoded_size())
            + size(Context::User, self.user.encoded_size())
            + size(Context::CallStack, Sequence(self.callers).encoded_size())
    }

    #[inline]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes, the sum of these.
        unsafe {
            if self.has(Context::Process) {
                self.process.encode(writer);
            }
            if self.has(Context::Thread) {
                self.thread.encode(writer);
            }
            if self.has(Context::ThreadName) {
                self.name().encode(writer);
            }
            if self.has(Context::Cpu) {
                self.cpu.encode(writer);
            }
            if self.has(Context::User) {
                self.user.encode(writer);
            }
            if self.has(Context::CallStack) {
                Sequence(self.callers).encode(writer);
            }
        }
    }

    fn field(&self, _: usize) -> Option<Value<'_>> {
        None
    }
}

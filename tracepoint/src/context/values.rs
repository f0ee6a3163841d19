//! What a record of a channel with contexts consists of: the contexts, then the event's fields.

use super::stack::{self, MAX_DEPTH};
use super::thread::{self, NAME_SIZE};
use super::{Context, Contexts, get};
use crate::field::sealed::Sealed;
use crate::field::{FieldValue, Fields, Sequence, Text, Value, Writer};
use crate::marker::FieldView;
use crate::thread::ThreadSlot;

/// The contexts of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextValues<'s> {
    which: Contexts,
    process: u32,
    thread: u32,
    name: [u8; NAME_SIZE],
    name_length: usize,
    cpu: u32,
    user: u64,
    callers: &'s [u64],
}

/// Where the call stack of an event is, while the event is written.
#[derive(Debug)]
pub(crate) struct Callers([u64; MAX_DEPTH]);

impl Callers {
    pub(crate) const NONE: Self = Self([0; MAX_DEPTH]);

    /// The callers of the function that this is in, if they are wanted.
    #[inline(always)]
    pub(crate) fn walk(&mut self, which: Contexts) -> &[u64] {
        if !which.contains(Context::CallStack) {
            return &[];
        }
        let callers = &mut self.0[..usize::from(which.depth).min(MAX_DEPTH)];
        let count = stack::walk(callers);
        &callers[..count]
    }
}

impl<'s> ContextValues<'s> {
    /// Those of the calling thread, whose slot it is, in a process with this id.
    pub(crate) fn now(which: Contexts, process: u32, slot: &ThreadSlot, callers: &'s [u64]) -> Self {
        let name = if which.contains(Context::ThreadName) { thread::name() } else { [0; NAME_SIZE] };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_SIZE);
        // The kernel cuts names at a byte, not at a character.
        let name_length = std::str::from_utf8(&name[..end]).map_or_else(|error| error.valid_up_to(), str::len);
        Self {
            which,
            process,
            thread: slot.tid(),
            name,
            name_length,
            cpu: if which.contains(Context::Cpu) { thread::cpu() } else { 0 },
            user: get(),
            callers,
        }
    }

    fn name(&self) -> Text<'_> {
        Text(std::str::from_utf8(&self.name[..self.name_length]).unwrap_or_default())
    }

    /// Each of them, in the order of the record.
    fn each(&self, mut see: impl FnMut(&dyn Encoded)) {
        let (name, callers) = (self.name(), Sequence(self.callers));
        let all: [(Context, &dyn Encoded); 6] = [
            (Context::Process, &self.process),
            (Context::Thread, &self.thread),
            (Context::ThreadName, &name),
            (Context::Cpu, &self.cpu),
            (Context::User, &self.user),
            (Context::CallStack, &callers),
        ];
        for (context, value) in all {
            if self.which.contains(context) {
                see(value);
            }
        }
    }
}

/// A value whatever its type.
trait Encoded {
    fn size(&self) -> usize;
    /// # Safety
    ///
    /// `writer` has room for `size` bytes.
    unsafe fn write(&self, writer: &mut Writer);
}

impl<V: FieldValue> Encoded for V {
    fn size(&self) -> usize {
        self.encoded_size()
    }

    unsafe fn write(&self, writer: &mut Writer) {
        // SAFETY: as the caller's.
        unsafe { self.encode(writer) }
    }
}

impl Sealed for ContextValues<'_> {}

impl Fields for ContextValues<'_> {
    // Nobody looks these up by index: they are no fields of the event's.
    const COUNT: usize = 0;

    fn encoded_size(&self) -> usize {
        let mut size = 0;
        self.each(|value| size += value.size());
        size
    }

    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller gives room for `encoded_size` bytes, which is the sum of these.
        self.each(|value| unsafe { value.write(writer) });
    }

    fn field(&self, _: usize) -> Option<Value<'_>> {
        None
    }
}

/// The fields of an event of any marker: one copy of the code that writes records serves them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Erased<'a>(pub(crate) FieldView<'a>);

impl Sealed for Erased<'_> {}

impl Fields for Erased<'_> {
    const COUNT: usize = 0;

    fn encoded_size(&self) -> usize {
        self.0.encoded_size()
    }

    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: as the caller's.
        unsafe { self.0.encode_into(writer) }
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index)
    }
}

//! Fields whose values have types that are known only at run time. They are encoded one after the other into a buffer, and copied from there to the
//! record, once its size is known.

use super::formatted::{CUT, boundary};
use super::sealed::Sealed;
use super::text::{copy_text, replace_nuls};
use super::value::{FieldValue, Fields, NulHandling, Value, Writer};
use super::variant::{AnyValue, TEXT};
use std::fmt;
use std::mem::MaybeUninit;

/// Maximum number of values of an event; further ones are omitted.
pub const MAX_ANY_FIELDS: usize = 32;
/// Maximum total size of all texts of an event in bytes.
const MAX_TEXTS: usize = 2048;
/// Maximum size of a value without the bytes of its text: a tag and a number. A text has its tag, the truncation mark, and a NUL.
const MAX_NUMBER: usize = 9;
const _: () = assert!(1 + CUT.len() < MAX_NUMBER);
const ROOM: usize = MAX_TEXTS + MAX_ANY_FIELDS * MAX_NUMBER;

/// Encoded values in the order of the fields. Nothing is allocated, and unused parts are not initialised.
///
/// The number after the bytes is initially not 0: the compiler clears zeros together with neighbouring bytes that need not be initialised, here all
/// bytes. `values` is between `text_room` and `used`, which change together with it: the compiler merges the loads of two neighbours of the same size
/// into one load, which would have to wait in the processor for the preceding separate stores to both.
#[derive(Debug)]
#[repr(C)]
pub struct AnyBuffer {
    bytes: [MaybeUninit<u8>; ROOM],
    /// Number of bytes available for further texts.
    text_room: usize,
    values: u32,
    nuls: u32,
    used: usize,
}

impl AnyBuffer {
    /// An empty buffer.
    #[inline(always)]
    pub const fn new() -> Self {
        Self { bytes: [MaybeUninit::uninit(); ROOM], used: 0, values: 0, text_room: MAX_TEXTS, nuls: 0 }
    }

    /// The number of values.
    #[inline(always)]
    pub const fn values(&self) -> usize {
        self.values as usize
    }

    /// Adds the value of the next field, unless there are [`MAX_ANY_FIELDS`] values already. A text is truncated if the texts of the event exceed
    /// 2048 bytes in total.
    #[inline(always)]
    pub fn push(&mut self, value: AnyValue<'_>) {
        match value {
            AnyValue::Text(text) if text.len() > self.text_room => {
                self.push_text(|out| fmt::Write::write_str(out, text));
            }
            _ if self.values() == MAX_ANY_FIELDS => {}
            AnyValue::Text(text) => {
                let to = self.end();
                // SAFETY: the text has room, and its tag and its NUL are fewer than MAX_NUMBER bytes. This buffer is borrowed mutably, so that
                // the text is not in it.
                unsafe {
                    to.write(TEXT);
                    copy(text, to.add(1), &mut self.nuls);
                    to.add(1 + text.len()).write(0);
                }
                self.added(1 + text.len() + 1);
                self.text_room -= text.len();
            }
            number => {
                // SAFETY: there is room for MAX_NUMBER bytes.
                unsafe { number.encode(&mut Writer::new(self.end(), NulHandling::Detect)) };
                self.added(number.encoded_size());
            }
        }
    }

    /// Adds the output of `write` as the text of the next field, like [`push`](Self::push). An error of `write` ends the text.
    #[inline]
    pub fn push_text(&mut self, write: impl FnOnce(&mut AnyText<'_>) -> fmt::Result) {
        if self.values() < MAX_ANY_FIELDS {
            // SAFETY: there is room for MAX_NUMBER bytes, of which the text takes at most one, the mark of the cut, and one.
            unsafe { self.end().write(TEXT) };
            self.added(1);
            // Ignore the error: it is also used to end formatting once further text would not be kept.
            let _ = write(&mut AnyText { buffer: self, is_cut: false });
            // SAFETY: as above.
            unsafe { self.end().write(0) };
            self.used += 1;
        }
    }

    /// The values.
    #[inline(always)]
    pub fn fields(&self) -> AnyFields<'_> {
        // SAFETY: the code that advances `used` has initialised the bytes up to there.
        let bytes = unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.used) };
        AnyFields { bytes, nuls: self.nuls }
    }

    /// The address of the next byte. Each value has room for [`MAX_NUMBER`] bytes, and all texts share the rest of [`MAX_TEXTS`]: checking the room
    /// for each value would take as long as writing it.
    #[inline(always)]
    fn end(&mut self) -> *mut u8 {
        debug_assert!(
            self.used <= MAX_TEXTS - self.text_room + self.values() * MAX_NUMBER,
            "each value keeps to its room"
        );
        // SAFETY: `used` is at most the size of `bytes`, as above.
        unsafe { self.bytes.as_mut_ptr().add(self.used).cast() }
    }

    /// Records that a value of this size, or the beginning of one, was added.
    #[inline(always)]
    fn added(&mut self, size: usize) {
        self.used += size;
        self.values += 1;
    }
}

/// Copies a text. If it contains NULs, replaces them and counts the text in `nuls`.
///
/// # Safety
///
/// `to` has room for the text, and does not overlap it.
#[inline(always)]
unsafe fn copy(text: &str, to: *mut u8, nuls: &mut u32) {
    // SAFETY: the caller guarantees the room.
    if unsafe { copy_text(text.as_bytes(), to) } {
        // SAFETY: as above.
        unsafe { copy_with_nuls(text, to) };
        *nuls += 1;
    }
}

/// The same as [`copy`], for a text that contains a NUL.
#[cold]
unsafe fn copy_with_nuls(text: &str, to: *mut u8) {
    // SAFETY: the caller guarantees the room; `copy_from_nonoverlapping` initialises what `replace_nuls` gets.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr(), text.len());
        replace_nuls(std::slice::from_raw_parts_mut(to, text.len()));
    }
}

impl Default for AnyBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// The text of a value that is being added.
#[derive(Debug)]
pub struct AnyText<'b> {
    buffer: &'b mut AnyBuffer,
    is_cut: bool,
}

impl fmt::Write for AnyText<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let buffer = &mut *self.buffer;
        if text.len() > buffer.text_room {
            return self.cut(text);
        }
        // SAFETY: all texts together have room for what is left of MAX_TEXTS. The buffer is borrowed mutably, so that the text is not in it.
        unsafe { copy(text, buffer.end(), &mut buffer.nuls) };
        buffer.text_room -= text.len();
        buffer.used += text.len();
        Ok(())
    }
}

impl AnyText<'_> {
    /// Copies the part of `text` that fits, and marks the end. The error ends the formatting.
    #[cold]
    fn cut(&mut self, text: &str) -> fmt::Result {
        if !self.is_cut {
            let fits = boundary(text, self.buffer.text_room);
            fmt::Write::write_str(self, &text[..fits])?;
            let buffer = &mut *self.buffer;
            buffer.text_room = 0;
            // SAFETY: the mark has room besides the texts: with the tag and the NUL it is at most MAX_NUMBER bytes.
            unsafe { buffer.end().copy_from_nonoverlapping(CUT.as_ptr(), CUT.len()) };
            buffer.used += CUT.len();
            self.is_cut = true;
        }
        Err(fmt::Error)
    }
}

/// The values of an event's fields; their number is known only at run time.
#[derive(Clone, Copy, Debug)]
pub struct AnyFields<'a> {
    bytes: &'a [u8],
    nuls: u32,
}

impl Sealed for AnyFields<'_> {}

impl Fields for AnyFields<'_> {
    const COUNT: usize = 0;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        self.bytes.len()
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees the room, which is in a ring.
        unsafe {
            writer.at().copy_from_nonoverlapping(self.bytes.as_ptr(), self.bytes.len());
            writer.advance(self.bytes.len());
        }
        writer.nuls += self.nuls;
    }

    fn field(&self, index: usize) -> Option<Value<'_>> {
        let mut rest = self.bytes;
        (0..index).try_for_each(|_| AnyValue::decode(&mut rest).map(drop))?;
        AnyValue::decode(&mut rest).map(AnyValue::into_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(buffer: &AnyBuffer) -> Vec<String> {
        let fields = buffer.fields();
        (0..).map_while(|index| fields.field(index)).map(|value| format!("{value:?}")).collect()
    }

    #[test]
    fn values_are_encoded_in_order() {
        let mut buffer = AnyBuffer::new();
        let values = [
            AnyValue::Unsigned(7),
            AnyValue::Text("said"),
            AnyValue::Absent,
            AnyValue::Signed(-7),
            AnyValue::Text(""),
            AnyValue::Float(0.5),
            AnyValue::Bool(true),
        ];
        for value in values {
            buffer.push(value);
        }
        let fields = buffer.fields();
        let mut copy = vec![0x55; fields.encoded_size() + 1];
        let mut expected = copy.clone();
        // SAFETY: both have room for one byte more.
        unsafe {
            fields.encode(&mut Writer::new(copy.as_mut_ptr(), NulHandling::Detect));
            let mut writer = Writer::new(expected.as_mut_ptr(), NulHandling::Replace);
            for value in values {
                value.encode(&mut writer);
            }
        }
        assert_eq!(copy, expected);
        let shown: Vec<_> = values.iter().map(|value| format!("{:?}", value.value())).collect();
        assert_eq!(texts(&buffer), shown);
    }

    #[test]
    fn texts_are_cut_off_at_a_character_and_numbers_behind_them_are_kept() {
        let mut buffer = AnyBuffer::new();
        let long = format!("{}ä", "x".repeat(MAX_TEXTS - 3));
        buffer.push(AnyValue::Text("12"));
        buffer.push(AnyValue::Text(&long));
        buffer.push_text(|out| fmt::Write::write_fmt(out, format_args!("{}{}", "gone", 1)));
        for n in 0..MAX_ANY_FIELDS as u64 {
            buffer.push(AnyValue::Unsigned(n));
        }
        let kept = texts(&buffer);
        assert_eq!(kept.len(), MAX_ANY_FIELDS);
        assert_eq!(kept[1], format!("Text(\"{}…\")", "x".repeat(MAX_TEXTS - 3)));
        assert_eq!((&*kept[2], &*kept[31]), ("Text(\"…\")", "Unsigned(28)"));
    }

    #[test]
    fn a_nul_is_replaced_and_counted() {
        let mut buffer = AnyBuffer::new();
        buffer.push(AnyValue::Text("a\0b"));
        let mut room = [0; 5];
        // SAFETY: it has the size.
        let mut writer = unsafe { Writer::new(room.as_mut_ptr(), NulHandling::Detect) };
        // SAFETY: as above.
        unsafe { buffer.fields().encode(&mut writer) };
        assert_eq!((&room, writer.nuls()), (b"\x05a\x1ab\0", 1));
    }
}

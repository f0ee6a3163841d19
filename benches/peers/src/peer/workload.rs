//! The two workloads of the variants that record, and the check of their records.
//!
//! `{i32, i32, i64}` are the kernel's three numbers. In `{string, u64}` the string has 32 bytes and the number is the sum of the
//! three, so that both workloads give the same tally.

use crate::tally;
use std::arch::asm;
use std::ffi::CStr;

/// The text, with the NUL behind it that C needs.
const NAME_OF_C: &CStr = c"a name of two and thirty letters";

/// The text.
pub(super) const NAME: &str = match NAME_OF_C.to_str() {
    Ok(name) => name,
    Err(_) => panic!("it is ASCII"),
};

/// The text, with an address and a length that the optimiser does not know. Both stay in registers. A NUL follows it.
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "no instruction, so nothing is read or written")]
pub(super) fn name() -> &'static str {
    let (mut place, mut length) = (NAME.as_ptr(), NAME.len());
    // SAFETY: no instruction, two registers.
    unsafe { asm!("/* {} {} */", inout(reg) place, inout(reg) length, options(nomem, nostack, preserves_flags)) };
    // SAFETY: the empty assembly changed neither, so they are the address and length of `NAME`.
    unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(place, length)) }
}

/// The text, with a constant length.
#[inline(always)]
#[expect(clippy::pointers_in_nomem_asm_block, reason = "no instruction, so nothing is read or written")]
pub(super) fn name_of_known_length() -> &'static [u8; NAME.len()] {
    let mut place = NAME.as_ptr();
    // SAFETY: no instruction, one register.
    unsafe { asm!("/* {} */", inout(reg) place, options(nomem, nostack, preserves_flags)) };
    // SAFETY: the empty assembly did not change it, so it is the address of `NAME`, a static of this length.
    unsafe { &*place.cast() }
}

/// The number next to the text.
#[inline(always)]
pub(super) fn sum(a: i32, b: i32, c: i64) -> u64 {
    i64::from(a).wrapping_add(i64::from(b)).wrapping_add(c).cast_unsigned()
}

/// Adds a record of the first workload to the tally: two 32-bit numbers and a 64-bit one.
pub(super) fn tally_numbers(values: &[u8]) {
    let word = |at: usize| i32::from_le_bytes(values[at..at + 4].try_into().expect("four bytes"));
    tally::add(word(0), word(4), i64::from_le_bytes(values[8..16].try_into().expect("eight bytes")));
}

/// Adds a record of the second workload to the tally: the text, a NUL, and a 64-bit number. Records with another text are not counted.
pub(super) fn tally_text(values: &[u8]) {
    let (name, rest) = values.split_at(NAME.len());
    if name == NAME.as_bytes() && rest[0] == 0 {
        tally::add(0, 0, i64::from_le_bytes(rest[1..9].try_into().expect("eight bytes")));
    }
}

/// Adds a line of text to the tally. The values of an event are the digits after these marks; if `named`, the line must contain
/// the text.
pub(super) fn tally_line(line: &str, marks: &[&str], named: bool) {
    if named && !line.contains(NAME) {
        return;
    }
    let values = marks.iter().map(|mark| {
        let (_, rest) = line.split_once(mark)?;
        let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(rest.len());
        // An unsigned 64-bit number represents a signed one.
        rest[..end].parse::<i128>().ok().map(|value| value as i64)
    });
    if let Some(sum) = values.sum::<Option<Wrapping>>() {
        tally::add(0, 0, sum.0);
    }
}

/// A sum that wraps.
struct Wrapping(i64);

impl std::iter::Sum<i64> for Wrapping {
    fn sum<I: Iterator<Item = i64>>(values: I) -> Self {
        Self(values.fold(0, i64::wrapping_add))
    }
}

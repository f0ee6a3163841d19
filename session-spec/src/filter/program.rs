//! Compiled filters: a short list of operations on a small stack.
//!
//! Jumps go forward only, so a program executes each operation at most once; comparing texts also takes time per byte. It does not allocate
//! and does not panic: it rejects an event that differs from what the type check saw, for example in the type of a field.

use super::number::{Bitwise, Comparison, Number};
use crate::glob::{Glob, Text};
use tracepoint_core::field::Value;
use tracepoint_core::marker::{FieldRange, FieldView, Filter};

/// Maximum number of numbers on a program's stack.
pub(super) const MAX_STACK: usize = 32;

/// Stack size that suffices for most programs.
const USUAL_STACK: usize = 4;

/// Disjoint ranges of integers in ascending order, with inclusive ends.
pub(super) type Ranges = Box<[(i128, i128)]>;

/// One operation. A `u16` is the index of a field, or an index into a table of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Pushes a constant.
    Push(u16),
    /// Pushes the number in a field.
    Load(u16),
    /// Pushes the number in a field of any type; absent if it holds no number.
    LoadAny(u16),
    Negate,
    Complement,
    Not,
    /// Replaces any number but 0 by 1.
    Truth,
    Bitwise(Bitwise),
    Compare(Comparison),
    /// Compares a field with a constant, as most filters do.
    CompareField(Comparison, u16, u16),
    /// Tests whether the topmost number is in a set (`true`) or not in it (`false`).
    OneOf(bool, u16),
    /// Tests whether a field matches a glob (`true`) or not (`false`).
    Matches(bool, u16, u16),
    /// The same test for a field of any type; a field without text matches nothing.
    MatchesAny(bool, u16, u16),
    /// Tests whether two fields have the same bytes (`true`) or not (`false`).
    Same(bool, u16, u16),
    /// If the truth value of the topmost number equals the given one, jumps to the operation at the index and keeps the number; otherwise
    /// drops it.
    SkipIf(bool, u16),
}

/// A filter compiled for one event: it contains the indices and types of the event's fields.
///
/// Cost at an event: a few ns for each comparison of numbers, and for each text the time of comparing its bytes; `docs/filters.md` has
/// figures. Memory: less than 200 bytes for each word of the filter.
#[derive(Debug)]
pub struct Program {
    pub(super) ops: Box<[Op]>,
    pub(super) numbers: Box<[Number]>,
    pub(super) globs: Box<[Glob]>,
    pub(super) sets: Box<[Ranges]>,
    /// The maximum depth of the stack.
    pub(super) stack: usize,
    /// The range of an integer field outside which the program rejects every event.
    pub(super) first_range: Option<FieldRange>,
}

/// Returns the range of an integer field outside which the operations reject every event; `None` if they do not begin with such a
/// condition.
pub(super) fn first_range(
    ops: &[Op],
    numbers: &[Number],
    is_signed: impl Fn(u16) -> Option<bool>,
) -> Option<FieldRange> {
    let [Op::CompareField(comparison, index, constant), ..] = ops else { return None };
    if !rejects(ops, 1) {
        return None;
    }
    let (comparison, index, constant) = (*comparison, *index, *constant);
    let Number::Integer(number) = *numbers.get(usize::from(constant))? else { return None };
    let is_signed = is_signed(index)?;
    let (least, most) = if is_signed { (i64::MIN.into(), i64::MAX.into()) } else { (0, i128::from(u64::MAX)) };
    let (low, high) = match comparison {
        Comparison::Equal | Comparison::NotEqual => (number, number),
        Comparison::Less => (least, number - 1),
        Comparison::LessOrEqual => (least, number),
        Comparison::Greater => (number + 1, most),
        Comparison::GreaterOrEqual => (number, most),
    };
    if low > high {
        return None;
    }
    // A range that exceeds the integers of the field is left to the program.
    let index = index.into();
    let range = if is_signed {
        FieldRange::signed(index, low.try_into().ok()?, high.try_into().ok()?)
    } else {
        FieldRange::unsigned(index, low.try_into().ok()?, high.try_into().ok()?)
    };
    Some(if comparison == Comparison::NotEqual { range.others() } else { range })
}

/// Returns whether a program at this operation rejects if a false comparison is on the stack: only `&&` follows up to the end.
fn rejects(ops: &[Op], mut at: usize) -> bool {
    loop {
        at = match ops.get(at) {
            None => return true,
            Some(Op::SkipIf(false, to)) => usize::from(*to).max(at + 1),
            Some(Op::Truth) => at + 1,
            Some(_) => return false,
        };
    }
}

impl Program {
    /// Returns whether the filter accepts the event. `field` returns the event's fields by index. The filter rejects an event that lacks a
    /// field that it reads, or has it with another type than declared.
    pub fn accepts<'v>(&self, field: impl Fn(usize) -> Option<Value<'v>>) -> bool {
        let result =
            if self.stack <= USUAL_STACK { self.run::<USUAL_STACK>(&field) } else { self.run::<MAX_STACK>(&field) };
        result.is_some_and(Number::is_true)
    }

    /// Returns the range of an integer field outside which the filter rejects every event, if the filter begins with a comparison with an
    /// unsigned number: `status >= 500`, alone or followed by `&&`. Serves as a cheaper test before the filter.
    pub const fn first_range(&self) -> Option<FieldRange> {
        self.first_range
    }

    #[inline]
    fn run<'v, const STACK: usize>(&self, field: &impl Fn(usize) -> Option<Value<'v>>) -> Option<Number> {
        let number = |index: u16| self.numbers.get(usize::from(index)).copied();
        let load = |index: u16| Number::of(field(index.into())?);
        // `Some(None)`: the value is absent.
        let text = |index: u16| match field(index.into())? {
            Value::Absent => Some(None),
            value => Text::of(value).map(Some),
        };
        let matches = |text: Option<Text<'v>>, glob: u16| {
            let glob = self.globs.get(usize::from(glob))?;
            Some(text.is_some_and(|text| glob.matches(text)))
        };
        let mut stack = Stack { slots: [Number::Integer(0); STACK], used: 0 };
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            let result = match *op {
                Op::Push(constant) => number(constant)?,
                Op::Load(index) => load(index)?,
                Op::LoadAny(index) => Number::of(field(index.into())?).unwrap_or(Number::ABSENT),
                Op::Negate => stack.pop()?.negated(),
                Op::Complement => Number::Integer((!stack.pop()?.bits()).into()),
                Op::Not => (!stack.pop()?.is_true()).into(),
                Op::Truth => stack.pop()?.is_true().into(),
                Op::Bitwise(operator) => {
                    let right = stack.pop()?;
                    stack.pop()?.bitwise(operator, right)
                }
                Op::Compare(comparison) => {
                    let right = stack.pop()?;
                    comparison.holds(stack.pop()?.compare(right)).into()
                }
                Op::CompareField(comparison, index, constant) => {
                    comparison.holds(load(index)?.compare(number(constant)?)).into()
                }
                Op::OneOf(wanted, set) => {
                    let set = self.sets.get(usize::from(set))?;
                    let found = match stack.pop()? {
                        Number::Integer(value) => {
                            let after = set.partition_point(|(first, _)| *first <= value);
                            set[..after].last().is_some_and(|(_, last)| value <= *last)
                        }
                        Number::Float(_) => false,
                    };
                    (found == wanted).into()
                }
                Op::Matches(wanted, index, glob) => (matches(text(index)?, glob)? == wanted).into(),
                Op::MatchesAny(wanted, index, glob) => {
                    (matches(Text::of(field(index.into())?), glob)? == wanted).into()
                }
                Op::Same(wanted, left, right) => {
                    let same = text(left)?.zip(text(right)?).is_some_and(|(left, right)| left.same(right));
                    (same == wanted).into()
                }
                Op::SkipIf(decided, to) => {
                    let result = stack.pop()?;
                    if result.is_true() != decided {
                        continue;
                    }
                    at = at.max(to.into());
                    decided.into()
                }
            };
            stack.push(result)?;
        }
        stack.pop()
    }
}

impl Filter for Program {
    fn accept(&self, event: FieldView<'_>) -> bool {
        self.accepts(|index| event.get(index))
    }
}

struct Stack<const SIZE: usize> {
    slots: [Number; SIZE],
    used: usize,
}

impl<const SIZE: usize> Stack<SIZE> {
    #[inline]
    fn push(&mut self, number: Number) -> Option<()> {
        *self.slots.get_mut(self.used)? = number;
        self.used += 1;
        Some(())
    }

    #[inline]
    fn pop(&mut self) -> Option<Number> {
        self.used = self.used.checked_sub(1)?;
        self.slots.get(self.used).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;
    use tracepoint_core::marker::FieldRange;

    tracepoint_core::define_trace! {
        provider = "first_range";
        fields(i: i32, u: u64, f: f64, s: &str) { i: i32 = i, u: u64 = u, f: f64 = f, s: str = s, b: bool = i == 0 }
    }

    #[test]
    fn the_first_comparison_of_an_integer_is_a_range() {
        let marker = tracepoint_core::find("first_range:fields").expect("listed").marker().expect("has fields");
        let (signed, unsigned) = (FieldRange::signed, FieldRange::unsigned);
        for (filter, expected) in [
            ("i == 8", Some(signed(0, 8, 8))),
            ("300 < i", Some(signed(0, 301, i64::MAX))),
            ("i != 7", Some(signed(0, 7, 7).others())),
            ("i >= 5 && s == \"x\"", Some(signed(0, 5, i64::MAX))),
            ("i < 0", Some(signed(0, i64::MIN, -1))),
            ("u > 1 && i > 1 && b && s == \"x\"", Some(unsigned(1, 2, u64::MAX))),
            ("u <= 3 && (i > 1 || b)", Some(unsigned(1, 0, 3))),
            ("u < 0", None),
            ("u > 18446744073709551615", None),
            // A sign is an operation.
            ("i >= -5", None),
            ("i > 1 || u > 1", None),
            ("!(i > 1)", None),
            ("(i > 1 && u > 1) || b", None),
            ("i > 1.5", None),
            ("f > 1.5", None),
            ("s == \"x\" && i > 1", None),
            ("b", None),
        ] {
            let program = Expression::parse(filter).and_then(|filter| filter.compile(marker.fields())).expect(filter);
            assert_eq!(program.first_range(), expected, "{filter}");
        }
    }
}

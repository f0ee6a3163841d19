//! Filters as they run: a short list of operations on a small stack.
//!
//! Operations go forward only, so that there are no more steps than operations, but for the bytes of texts. Nothing is allocated, and
//! nothing panics: what cannot be, such as a field of another type than the check saw, refuses the event.

use super::number::{Bitwise, Comparison, Number};
use super::pattern::{Pattern, Text};
use tracepoint_core::field::Value;
use tracepoint_core::marker::{FieldView, Filter};

/// How many numbers a program may hold at a time.
pub(super) const MAX_STACK: usize = 32;

/// Most programs hold no more than this.
const USUAL_STACK: usize = 4;

/// One operation. Numbers are indices: of fields, or into the tables of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// A constant.
    Push(u16),
    /// The number in a field.
    Load(u16),
    Negate,
    Complement,
    Not,
    /// 1 for anything but 0.
    Truth,
    Bitwise(Bitwise),
    Compare(Comparison),
    /// A field and a constant: what most filters are made of.
    CompareField(Comparison, u16, u16),
    /// Whether a number is one of a table's. `bool`: whether it shall.
    OneOf(bool, u16),
    /// A field, and a pattern that it shall match, or not.
    Matches(bool, u16, u16),
    /// Two fields that shall have the same bytes, or not.
    Same(bool, u16, u16),
    /// Over what comes before the operation at the index if the last result is the one given, which stays; else the result goes.
    SkipIf(bool, u16),
}

/// A filter that fits one event: it knows where the event's fields are, and of which type.
///
/// Cost at an event: a few ns for each comparison of numbers, and what comparing its bytes takes for each text; `docs/filters.md` has
/// figures. Memory: less than 200 bytes for each word of the filter.
#[derive(Debug)]
pub struct Program {
    pub(super) ops: Box<[Op]>,
    pub(super) numbers: Box<[Number]>,
    pub(super) patterns: Box<[Pattern]>,
    pub(super) sets: Box<[Box<[i128]>]>,
    /// How many numbers it holds at most.
    pub(super) stack: usize,
}

impl Program {
    /// Whether an event is wanted whose fields are what `field` gives for their indices. An event that lacks one that is looked at, or
    /// has one of another type than it was declared with, is not.
    pub fn accepts<'v>(&self, field: impl Fn(usize) -> Option<Value<'v>>) -> bool {
        let result =
            if self.stack <= USUAL_STACK { self.run::<USUAL_STACK>(&field) } else { self.run::<MAX_STACK>(&field) };
        result.is_some_and(Number::is_true)
    }

    #[inline]
    fn run<'v, const STACK: usize>(&self, field: &impl Fn(usize) -> Option<Value<'v>>) -> Option<Number> {
        let number = |index: u16| self.numbers.get(usize::from(index)).copied();
        let load = |index: u16| Number::of(field(index.into())?);
        let text = |index: u16| Text::of(field(index.into())?);
        let mut stack = Stack { slots: [Number::Integer(0); STACK], used: 0 };
        let mut at = 0;
        while let Some(op) = self.ops.get(at) {
            at += 1;
            let result = match *op {
                Op::Push(constant) => number(constant)?,
                Op::Load(index) => load(index)?,
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
                    let found = matches!(stack.pop()?, Number::Integer(value) if set.binary_search(&value).is_ok());
                    (found == wanted).into()
                }
                Op::Matches(wanted, index, pattern) => {
                    (self.patterns.get(usize::from(pattern))?.matches(text(index)?) == wanted).into()
                }
                Op::Same(wanted, left, right) => (text(left)?.same(text(right)?) == wanted).into(),
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

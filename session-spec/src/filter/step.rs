//! The parsed form of filters: steps in the order of evaluation.
//!
//! Operands come before operators, and the list is flat, so that neither the type check nor a drop recurses: hostile input could otherwise
//! nest deeply enough to overflow the stack.

use super::number::{Bitwise, Comparison, Number};
use crate::glob::Glob;
use crate::syntax::SyntaxError;
use std::ops::Range;
use winnow::Parser;
use winnow::stream::{self, LocatingSlice, Stateful};
use winnow::token::take_while;

/// `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    And,
    Or,
}

/// One step of the evaluation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(Number),
    Truth(bool),
    Text(Glob),
    /// The field named at the place.
    Field,
    Negate,
    Complement,
    Not,
    Bitwise(Bitwise),
    Compare(Comparison),
    /// Between the two sides: the second is skipped if the first decides.
    Between(Logic),
    /// After the second side.
    Behind(Logic),
}

/// A step and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) node: Node,
    pub(super) place: Range<usize>,
}

/// The input of the parsers.
pub(super) type Input<'t> = Stateful<LocatingSlice<&'t str>, State>;
pub(super) type Parsed<T> = Result<T, SyntaxError>;

/// So many characters of a set, which is a function pointer: the parser is compiled once for all sets.
pub(super) fn characters<'t>(
    count: impl Into<stream::Range>,
    set: fn(char) -> bool,
) -> impl Parser<Input<'t>, &'t str, SyntaxError> {
    take_while(count, set)
}

/// Whether it can be part of a name.
pub(super) const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The state of the parser. Nothing is added before the parser is committed to an alternative.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Number of open parentheses and signs.
    pub(super) depth: usize,
    pub(super) steps: Vec<Step>,
}

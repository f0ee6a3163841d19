//! Filters: conditions on the fields of an event.
//!
//! A filter is a text in a rule. It is parsed once, compiled for the fields of each event that the rule matches, and run by the marker
//! stage of the core at every event, before space in a ring is reserved. `docs/filters.md` describes the language.
//!
//! ```text
//!   text ──parse──▶ Expression ──compile, for each event──▶ Program ──▶ accepts(fields)
//!          parser,               check: names, types                      program
//!          literal, duration
//! ```
//!
//! ```
//! use tracepoint_session_spec::filter::Expression;
//!
//! tracepoint::define_trace! {
//!     provider = "shop";
//!     pub paid(cents: u64, by: &str) { cents: u64 = cents, by: str = by }
//! }
//!
//! let marker = tracepoint::find("shop:paid")?.marker().unwrap();
//! let large = Expression::parse("cents >= 100_00 && by == \"card*\"")?;
//! let program = large.compile(marker.fields())?;
//!
//! let error = Expression::parse("cent > 5")?.compile(marker.fields()).unwrap_err();
//! assert_eq!(error.to_string(), "\
//! no field is called `cent`; did you mean cents?
//!   cent > 5
//!   ^^^^");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod duration;
mod error;
mod field;
mod literal;
mod number;
mod parser;
mod program;
mod step;

pub(crate) use duration::split_unit;
pub use error::FilterError;
pub(crate) use field::FilterField;
#[cfg(feature = "traces")]
pub(crate) use field::{FieldKind, Label};
pub use program::Program;

use crate::from_text::try_from_text;
use std::fmt;
use std::str::FromStr;
use step::Step;
use tracepoint_core::field::FieldDescriptor;

/// A filter that follows the grammar, not yet compiled for an event.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    steps: Vec<Step>,
}

impl Expression {
    /// Parses a filter: 4096 bytes at most, 64 nested parentheses and signs at most.
    ///
    /// # Errors
    ///
    /// If the text does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { text: text.to_owned(), steps: parser::parse(text)? })
    }

    /// Compiles the filter for an event with these fields.
    ///
    /// # Errors
    ///
    /// If the event has no field of a name in the filter, or has it with a type that the operator does not take; or if more than 32
    /// operands would be on the stack.
    pub fn compile(&self, fields: &[FieldDescriptor]) -> Result<Program, FilterError> {
        self.compile_for(&fields.iter().map(FilterField::from).collect::<Vec<_>>())
    }

    /// Compiles the filter for fields of any origin.
    pub(crate) fn compile_for(&self, fields: &[FilterField<'_>]) -> Result<Program, FilterError> {
        check::check(&self.text, &self.steps, fields)
    }

    /// Returns the text of the filter as given.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Expression {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

try_from_text!(Expression, FilterError);

/// Compares the texts, of which the rest is made.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

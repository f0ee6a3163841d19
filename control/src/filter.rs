//! Filters: which events of a kind are wanted, by their fields.
//!
//! The step before is the text of a rule; the step after is the marker stage of the core, which asks a [`Program`] at every event before
//! anything is reserved. `docs/filters.md` describes the language.
//!
//! ```text
//!   text ──parse──▶ Expression ──compile, for each event──▶ Program ──▶ accepts(fields)
//!          lexer,                check: names, types                      program
//!          parser
//! ```
//!
//! ```
//! use tracepoint_control::filter::Expression;
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
mod error;
mod lexer;
mod number;
mod parser;
mod pattern;
mod program;

pub use error::FilterError;
pub use program::Program;

use parser::Step;
use std::fmt;
use std::str::FromStr;
use tracepoint_core::field::FieldDescriptor;

/// A filter as it was written: it reads as one, and knows no event yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    steps: Vec<Step>,
}

impl Expression {
    /// Reads a filter: 4096 bytes at most, 64 parentheses and signs inside each other at most.
    ///
    /// # Errors
    ///
    /// If it does not follow the grammar.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { text: text.to_owned(), steps: parser::parse(text)? })
    }

    /// The filter for an event with these fields.
    ///
    /// # Errors
    ///
    /// If the event lacks a field, or has it with a type that will not do; if more than 32 operands wait for their operators.
    pub fn compile(&self, fields: &[FieldDescriptor]) -> Result<Program, FilterError> {
        check::check(&self.text, &self.steps, fields)
    }

    /// The text that it was read from.
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

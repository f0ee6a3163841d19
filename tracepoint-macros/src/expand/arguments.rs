//! The arguments of a tracepoint by their parts, as expansions list them.

use crate::input::Tracepoint;
use syn::{Ident, Type};

pub(super) struct Arguments<'a> {
    pub(super) names: Vec<&'a Ident>,
    pub(super) types: Vec<&'a Type>,
    /// The types with the lifetime of one call in place of those that are elided.
    pub(super) tied: Vec<&'a Type>,
}

impl<'a> Arguments<'a> {
    pub(super) fn of(tracepoint: &'a Tracepoint) -> Self {
        let arguments = &tracepoint.prototype.arguments;
        Self {
            names: arguments.iter().map(|argument| &argument.name).collect(),
            types: arguments.iter().map(|argument| &argument.ty).collect(),
            tied: arguments.iter().map(|argument| &argument.ty_tied).collect(),
        }
    }
}

//! The names and types of a tracepoint's arguments as separate lists, for expansions.

use crate::tracepoint::Tracepoint;
use syn::{Ident, Type};

pub(super) struct Arguments<'a> {
    pub(super) names: Vec<&'a Ident>,
    pub(super) types: Vec<&'a Type>,
    /// The types with the call's lifetime in place of elided ones.
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

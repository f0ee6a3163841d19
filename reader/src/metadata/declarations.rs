//! The declarations of the text so far. A name must be declared before its use, so that types are built while the text is parsed.

use super::types::{ByteOrder, Type};
use std::collections::HashMap;

/// Maximum depth of nested types, in the text or through names.
pub(super) const MAX_DEPTH: u32 = 64;
/// Maximum number of types declared in one metadata.
const MAX_TYPES: usize = 1 << 20;
/// Maximum number of clocks mentioned in one metadata.
const MAX_CLOCKS: usize = 256;

/// The metadata exceeds a limit of this reader.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetadataLimit {
    #[error("blocks nest deeper than {MAX_DEPTH}")]
    Blocks,
    #[error("more than {MAX_TYPES} types")]
    Types,
    #[error("types nest deeper than {MAX_DEPTH}")]
    TypeDepth,
    #[error("more than {MAX_CLOCKS} clocks")]
    Clocks,
}

/// The declarations so far.
#[derive(Debug)]
pub(super) struct Declarations {
    /// Named types, innermost scope last. The names of structures, variants and enumerations begin with `struct ` and so on.
    scopes: Vec<HashMap<String, Type>>,
    nesting: u32,
    types: usize,
    pub(super) native: ByteOrder,
    /// Names of clocks in the order of their first mention; an integer refers to a clock by its index.
    pub(super) clocks: Vec<String>,
}

impl Declarations {
    pub(super) fn new(native: ByteOrder) -> Self {
        Self { scopes: vec![HashMap::new()], nesting: 0, types: 0, native, clocks: Vec::new() }
    }

    pub(super) fn find(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }

    pub(super) fn declare(&mut self, name: String, ty: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, ty);
        }
    }

    /// Begins a scope one level deeper.
    pub(super) fn enter(&mut self) -> Result<(), MetadataLimit> {
        if self.nesting >= MAX_DEPTH {
            return Err(MetadataLimit::Blocks);
        }
        self.nesting += 1;
        self.scopes.push(HashMap::new());
        Ok(())
    }

    /// Ends the innermost scope.
    pub(super) fn leave(&mut self) {
        self.scopes.pop();
        self.nesting -= 1;
    }

    /// Counts a new type against the limits.
    pub(super) fn admit(&mut self, ty: &Type) -> Result<(), MetadataLimit> {
        self.types += 1;
        if self.types > MAX_TYPES {
            return Err(MetadataLimit::Types);
        }
        if ty.depth() > MAX_DEPTH {
            return Err(MetadataLimit::TypeDepth);
        }
        Ok(())
    }

    /// The index of a clock, by its name.
    pub(super) fn clock(&mut self, name: &str) -> Result<u16, MetadataLimit> {
        let index = match self.clocks.iter().position(|clock| clock == name) {
            Some(index) => index,
            None if self.clocks.len() < MAX_CLOCKS => {
                self.clocks.push(name.to_owned());
                self.clocks.len() - 1
            }
            None => return Err(MetadataLimit::Clocks),
        };
        Ok(index as u16)
    }
}

//! Texts that rows of the page refer to by their index.

use super::text::cut;
use std::collections::HashMap;

/// Maximum number of distinct texts; all further ones share the last.
const MAX: usize = 4096;

#[derive(Default)]
pub(super) struct Names {
    pub(super) all: Vec<String>,
    indices: HashMap<String, usize>,
}

impl Names {
    pub(super) fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        if self.all.len() == MAX {
            return MAX - 1;
        }
        let name_shown = if self.all.len() + 1 == MAX { "(further names)".to_owned() } else { cut(name) };
        self.indices.insert(name.to_owned(), self.all.len());
        self.all.push(name_shown);
        self.all.len() - 1
    }
}

//! What there is to say about a recovery.

/// Most notes that are kept.
const MOST: usize = 100;

/// Notes, and whether any of them means that something is missing that should be there.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    notes: Vec<String>,
    more: u64,
    wanting: bool,
}

impl Journal {
    /// Something worth knowing.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        if self.notes.len() < MOST {
            self.notes.push(note.into());
        } else {
            self.more += 1;
        }
    }

    /// Something that could not be read, or contradicts the rest: the account is not complete.
    pub(crate) fn wrong(&mut self, note: impl Into<String>) {
        self.wanting = true;
        self.note(note);
    }

    /// Whether everything could be read.
    pub(crate) fn is_complete(&self) -> bool {
        !self.wanting
    }

    pub(crate) fn into_notes(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes.push(format!("and {} more of this kind", self.more));
        }
        self.notes
    }
}

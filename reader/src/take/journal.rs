//! Notes about faults found while packets were taken.

/// Maximum number of notes.
const MAX_NOTES: usize = 100;

/// Notes, and a flag if they make the account incomplete.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    notes: Vec<String>,
    /// Number of notes that were dropped.
    more: u64,
    is_incomplete: bool,
}

impl Journal {
    /// Adds a note that does not affect the completeness of the account.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note.into());
        } else {
            self.more += 1;
        }
    }

    /// Adds a note about an unreadable part or a contradiction: the account is incomplete.
    pub(crate) fn wrong(&mut self, note: impl Into<String>) {
        self.is_incomplete = true;
        self.note(note);
    }

    /// True if everything could be read.
    pub(crate) fn is_complete(&self) -> bool {
        !self.is_incomplete
    }

    pub(crate) fn into_notes(mut self) -> Vec<String> {
        if self.more > 0 {
            self.notes.push(format!("and {} more notes", self.more));
        }
        self.notes
    }
}

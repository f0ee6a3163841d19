//! Notes about faults that were found while packets were taken.

/// The number of notes that are kept.
const MAX_NOTES: usize = 100;

/// Notes, and whether the account is complete in spite of them.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    notes: Vec<String>,
    /// Notes that were not kept.
    more: u64,
    is_incomplete: bool,
}

impl Journal {
    /// Adds a note that leaves the account complete.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note.into());
        } else {
            self.more += 1;
        }
    }

    /// Adds a note about something that could not be read, or contradicts the rest: the account is incomplete.
    pub(crate) fn wrong(&mut self, note: impl Into<String>) {
        self.is_incomplete = true;
        self.note(note);
    }

    /// Whether everything could be read.
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

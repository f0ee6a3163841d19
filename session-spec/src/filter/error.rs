//! The error of a filter, and how it displays the place.

use std::fmt;
use std::ops::Range;

/// Number of characters shown on either side of the place in a long filter.
const AROUND: usize = 60;

/// A filter does not follow the grammar, or does not fit the fields of an event. `Display` shows the filter with carets under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    place: Range<usize>,
    reason: String,
    /// True if the reason suggests a name that the event has.
    suggests: bool,
}

impl FilterError {
    pub(super) fn new(text: &str, place: Range<usize>, reason: impl Into<String>) -> Self {
        Self { text: text.to_owned(), place, reason: reason.into(), suggests: false }
    }

    /// Adds a suggestion of these names to the reason, if there are any.
    pub(super) fn suggesting(mut self, nearest: &[String]) -> Self {
        if !nearest.is_empty() {
            self.suggests = true;
            self.reason = format!("{}; did you mean {}?", self.reason, nearest.join(" or "));
        }
        self
    }

    /// The reason, in a sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The place of the error, in bytes of the filter's text.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    pub(crate) const fn suggests(&self) -> bool {
        self.suggests
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters = |range: Range<usize>| self.text.get(range).unwrap_or("").chars().count();
        let before = characters(0..self.place.start);
        let carets = characters(self.place.clone()).clamp(1, AROUND);
        let skipped = before.saturating_sub(AROUND);
        let shown = before - skipped + carets + AROUND;
        let mut rest = self.text.chars().skip(skipped);
        // Control characters become blanks, so that each character takes one column.
        let excerpt: String = rest.by_ref().take(shown).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let (front, back) = (if skipped > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
        let indent = before - skipped + front.chars().count();
        write!(f, "{}\n  {front}{excerpt}{back}\n  {:indent$}{:^>carets$}", self.reason, "", "")
    }
}

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_filters_are_cut_around_the_error() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let shown = FilterError::new(&text, 500..504, "wrong").to_string();
        let expected = format!("wrong\n  …{}HERE{}…\n  {}^^^^", "a".repeat(60), "b".repeat(60), " ".repeat(61));
        assert_eq!(shown, expected);
    }

    #[test]
    fn positions_are_counted_in_characters() {
        let shown = FilterError::new("ä\t== x", 6..7, "wrong").to_string();
        assert_eq!(shown, "wrong\n  ä == x\n       ^");
        assert_eq!(FilterError::new("", 0..0, "empty").to_string(), "empty\n  \n  ^");
    }
}

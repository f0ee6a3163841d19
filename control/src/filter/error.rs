//! What is wrong with a filter, and where.

use std::fmt;
use std::ops::Range;

/// How many characters of a long filter are shown on either side of the place.
const AROUND: usize = 60;

/// A filter that cannot be understood, or does not fit an event. Its text shows the filter with carets under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    place: Range<usize>,
    reason: String,
    /// Whether a name that does fit was suggested.
    suggests: bool,
}

impl FilterError {
    pub(super) fn new(text: &str, place: Range<usize>, reason: impl Into<String>) -> Self {
        Self { text: text.to_owned(), place, reason: reason.into(), suggests: false }
    }

    /// The same, with names that would do.
    pub(super) fn suggesting(mut self, nearest: &[String]) -> Self {
        if !nearest.is_empty() {
            self.suggests = true;
            self.reason = format!("{}; did you mean {}?", self.reason, nearest.join(" or "));
        }
        self
    }

    /// What is wrong, in a sentence.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The place, in bytes of the filter's text.
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
        // One column for each character, whatever a terminal would make of it.
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
    fn long_filters_are_cut_around_the_place() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let shown = FilterError::new(&text, 500..504, "wrong").to_string();
        let expected = format!("wrong\n  …{}HERE{}…\n  {}^^^^", "a".repeat(60), "b".repeat(60), " ".repeat(61));
        assert_eq!(shown, expected);
    }

    #[test]
    fn places_are_characters() {
        let shown = FilterError::new("ä\t== x", 6..7, "wrong").to_string();
        assert_eq!(shown, "wrong\n  ä == x\n       ^");
        assert_eq!(FilterError::new("", 0..0, "empty").to_string(), "empty\n  \n  ^");
    }
}

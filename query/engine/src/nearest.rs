//! Suggests known names similar to an unknown one.

/// Maximum number of suggestions.
const SUGGESTED: usize = 3;
/// Minimum similarity of a suggestion, from 0 to 1.
const ALIKE: f64 = 0.5;

/// Known names similar to `name`, ignoring case, in descending order of similarity.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let similarity = |other: &str| {
        let other = other.to_lowercase();
        // Omitting the provider is a common mistake, and its edit distance is large.
        let is_part = other.rsplit(':').next() == Some(&wanted);
        if is_part { 1.0 } else { strsim::normalized_damerau_levenshtein(&wanted, &other) }
    };
    let mut alike: Vec<_> = known.into_iter().map(|other| (similarity(other), other)).collect();
    alike.retain(|(similarity, _)| *similarity >= ALIKE);
    alike.sort_by(|(a, left), (b, right)| b.total_cmp(a).then(left.cmp(right)));
    alike.into_iter().take(SUGGESTED).map(|(_, other)| other.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn typing_errors_and_missing_providers_are_found() {
        let known = ["account", "losses", "events", "shop:answered", "shop:asked", "disk:read"];
        assert_eq!(nearest("shop:answred", known), ["shop:answered", "shop:asked"]);
        assert_eq!(nearest("asked", known), ["shop:asked"]);
        assert_eq!(nearest("Loses", known), ["losses"]);
        assert!(nearest("zzzzzzzz", known).is_empty());
    }
}

//! Suggestions for a name that does not exist.

use strsim::osa_distance;

/// The names most similar to `wanted`, best first, at most three: names that contain it, and names at an edit distance of at most a third
/// of their length, ignoring case. If both names have the same provider (the part before the colon), only the rest is compared.
pub fn nearest_names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let rank = |name: &'a str| {
        let lower = name.to_lowercase();
        let (wanted, compared) = match (wanted.split_once(':'), lower.split_once(':')) {
            (Some((wanted_provider, wanted)), Some((provider, event))) if wanted_provider == provider => {
                (wanted, event)
            }
            _ => (&*wanted, &*lower),
        };
        let distance = osa_distance(wanted, compared);
        let is_near = distance <= compared.len().max(3) / 3 || (!wanted.is_empty() && compared.contains(wanted));
        is_near.then_some((distance, name))
    };
    let mut ranked: Vec<(usize, &str)> = names.into_iter().filter_map(rank).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest_names;

    #[test]
    fn typing_errors_and_missing_providers_are_found() {
        let names = ["account", "losses", "events", "shop:answered", "Shop:Asked", "disk:read"];
        assert_eq!(nearest_names("shop:answred", names), ["shop:answered"]);
        assert_eq!(nearest_names("asked", names), ["Shop:Asked"]);
        assert_eq!(nearest_names("LOSES", names), ["losses"]);
        assert!(nearest_names("zzzzzzzz", names).is_empty());
    }
}

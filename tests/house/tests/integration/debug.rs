//! Every type of the facade is formatted by `controller/tests/integration/debug.rs`, which requires that `Debug` ends and is short.

use tracepoint_house::root;

/// Names in the list that are not types with their own `Debug`: traits.
const TRAITS: [&str; 2] = ["Sink", "TraceEnum"];

#[test]
fn every_type_of_the_facade_is_formatted() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file of the repository");
    let (test, list) = (read("controller/tests/integration/debug.rs"), read("tests/house/facade.txt"));
    let is_type = |name: &&str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let types = list.lines().filter_map(|line| line.rsplit("::").next()).filter(is_type);
    // Counts its import, which clippy refuses if it is unused, and the place where it is formatted.
    let is_formatted = |name: &str| test.split(|c: char| !c.is_alphanumeric()).filter(|word| *word == name).count() > 1;
    let missing: Vec<_> = types.filter(|name| !TRAITS.contains(name) && !is_formatted(name)).collect();
    assert!(missing.is_empty(), "not formatted: {missing:?}");
}

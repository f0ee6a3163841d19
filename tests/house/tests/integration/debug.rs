//! Every type of the facade is formatted by `controller/tests/integration/debug.rs`, which requires that `Debug` ends and is short.

use tracepoint_house::root;

/// Names in the list that are not types with their own `Debug`: traits.
const TRAITS: [&str; 4] = ["Aggregate", "Filter", "Sink", "TraceEnum"];

/// Modules that the facade re-exports as a whole: their crates test their types.
const MODULES: [&str; 9] = [
    "context",
    "filter",
    "probes",
    "sinks::account",
    "sinks::decode",
    "sinks::stream",
    "sinks::udp",
    "span",
    "testing",
];

#[test]
fn every_type_of_the_facade_is_formatted() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file of the repository");
    let (test, list) = (read("controller/tests/integration/debug.rs"), read("tests/house/facade.txt"));
    let is_type = |name: &&str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let names = list.lines().filter(|line| {
        let module = line.rsplit_once("::").map_or("", |(module, _)| module);
        !line.starts_with(' ')
            && !MODULES.iter().any(|other| module == *other || module.starts_with(&format!("{other}::")))
    });
    let types = names.filter_map(|line| line.rsplit("::").next()).filter(is_type);
    // Counts its import, which clippy refuses if it is unused, and the place where it is formatted.
    let is_formatted = |name: &str| test.split(|c: char| !c.is_alphanumeric()).filter(|word| *word == name).count() > 1;
    let missing: Vec<_> = types.filter(|name| !TRAITS.contains(name) && !is_formatted(name)).collect();
    assert!(missing.is_empty(), "not formatted: {missing:?}");
}

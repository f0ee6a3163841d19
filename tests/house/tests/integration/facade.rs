//! The public API of the facade is the list in `facade.txt`: a change must be deliberate, and is seen in review.

use tracepoint_house::api::Api;
use tracepoint_house::root;

/// Maximum number of names at the root of the facade.
const MAX_AT_ROOT: usize = 30;

#[test]
fn the_facade_exports_what_is_listed() {
    let api = Api::read();
    let list = root().join("tests/house/facade.txt");
    let mut expected = String::new();
    for (name, members) in &api.names {
        expected.extend([name, "\n"]);
        if api.names.keys().any(|other| other.ends_with(&format!("::{name}"))) {
            continue; // a name at the root, whose members are listed with the module
        }
        expected.extend(members.iter().flat_map(|member| ["    ", member, "\n"]));
    }
    if std::env::var_os("TRACEPOINT_FACADE").is_some_and(|value| value == "overwrite") {
        std::fs::write(&list, &expected).expect("writable");
    }
    let listed = std::fs::read_to_string(&list).expect("the list");
    let first = expected.lines().zip(listed.lines()).find(|(expected, listed)| expected != listed);
    assert!(
        listed == expected,
        "{} differs, first at {first:?}; TRACEPOINT_FACADE=overwrite writes it",
        list.display()
    );

    let root: Vec<_> = api.names.keys().filter(|name| !name.contains("::")).collect();
    assert!(root.len() <= MAX_AT_ROOT, "{} names at the root, {MAX_AT_ROOT} allowed: {root:?}", root.len());
}

#[test]
fn each_module_of_the_facade_has_a_page() {
    for file in tracepoint_house::rust_files(&root().join("tracepoint/src")) {
        let text = std::fs::read_to_string(&file).expect("a source");
        let page: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("//!")).collect();
        let has = |word: &str| page.iter().any(|line| line.contains(word));
        assert!(has(" ```"), "{}: its page has no example", file.display());
    }
}

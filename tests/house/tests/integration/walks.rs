//! The walks in ARCHITECTURE.md name existing files, and none of them twice.

use std::collections::BTreeSet;
use std::path::Path;
use tracepoint_house::root;

/// The beginning of the heading of a walk.
const HEADING: &str = "\n## Walk: ";

#[test]
fn a_walk_enters_existing_files_and_none_twice() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let walks: Vec<_> = text.split(HEADING).skip(1).collect();
    assert_eq!(walks.len(), 2, "a rule and a packet");
    for walk in walks {
        let walk = walk.split("\n## ").next().unwrap_or(walk);
        let mut seen = BTreeSet::new();
        let files = walk
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "rs"));
        for file in files {
            assert!(root().join(file).is_file(), "{file} does not exist");
            assert!(seen.insert(file), "{file} is entered twice");
        }
        assert!(seen.len() > 10, "{seen:?}");
    }
}

//! The list in ARCHITECTURE.md of the files on the fast path names existing files, and stays short.

use std::collections::BTreeSet;
use std::path::PathBuf;
use tracepoint_house::root;

/// The beginning of the list.
const BEGINNING: &str = "The fast path enters ";

/// Maximum number of files that an event may enter.
const MAX: usize = 15;

/// The number stated in the list, and its files: each group of names is followed by its directory.
fn list() -> (usize, Vec<PathBuf>) {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, list) = text.split_once(BEGINNING).unwrap_or_else(|| panic!("ARCHITECTURE.md has no `{BEGINNING}…`"));
    let (list, _) = list.split_once("\n\n").expect("a paragraph ends");
    let (number, _) = list.split_once(' ').expect("a number and `files`");
    let mut files = Vec::new();
    for group in list.split(';') {
        let mut names: Vec<_> = group.split('`').skip(1).step_by(2).collect();
        let directory = root().join(names.pop().expect("a directory behind the names"));
        files.extend(names.into_iter().map(|name| directory.join(name).with_extension("rs")));
    }
    (number.parse().expect("a number"), files)
}

#[test]
fn the_files_of_the_fast_path_exist_and_are_few() {
    let (number, files) = list();
    let missing: Vec<_> = files.iter().filter(|file| !file.is_file()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md lists files of the fast path that do not exist: {missing:?}");
    assert_eq!(
        files.iter().collect::<BTreeSet<_>>().len(),
        number,
        "ARCHITECTURE.md says {number} files and lists {files:?}"
    );
    assert!(number <= MAX, "the fast path enters {number} files: more than {MAX}");
}

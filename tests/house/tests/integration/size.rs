//! The core stays small enough to be read.

use tracepoint_house::{root, rust_files};

/// Maximum number of Rust lines in `core/src`.
const MAX: usize = 5000;

#[test]
fn the_core_has_fewer_than_5000_lines() {
    let files = rust_files(&root().join("core/src"));
    let lines: usize = files.iter().map(|file| std::fs::read_to_string(file).expect("a file").lines().count()).sum();
    assert!(lines < MAX, "core/src has {lines} lines: {MAX} or more");
}

//! Every error type of the crates from `core` to `controller` is in `controller/tests/integration/errors.rs`, which requires that it is
//! `Error + Send + Sync`.

use tracepoint_house::{root, rust_files};

const CRATES: [&str; 11] = [
    "core",
    "ring",
    "wire",
    "reader",
    "run-dir",
    "session-io",
    "session-spec",
    "sinks",
    "probes",
    "session",
    "controller",
];

#[test]
fn every_error_type_is_checked() {
    let checked = std::fs::read_to_string(root().join("controller/tests/integration/errors.rs")).expect("the test");
    let is_checked = |name: &str| checked.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    for file in CRATES.iter().flat_map(|name| rust_files(&root().join(name).join("src"))) {
        let text = std::fs::read_to_string(&file).expect("a file");
        let items = text.lines().filter_map(|line| line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum ")));
        for item in items {
            let name = item.split(|c: char| !c.is_alphanumeric()).next().expect("a name");
            assert!(!name.ends_with("Error") || is_checked(name), "{name} of {} is not checked", file.display());
        }
    }
}

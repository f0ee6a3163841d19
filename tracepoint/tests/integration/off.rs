//! The feature `off`: the same source compiles, runs, and leaves nothing of its tracepoints in the program.

use crate::fixture::{Build, run};
use object::{Object, ObjectSection};
use std::path::Path;

/// Words that occur only in the tracepoints and markers of the program.
const WORDS: [&str; 11] = [
    "zq_provider",
    "zq_documentation",
    "zq_tracepoint",
    "zq_argument",
    "zq_number",
    "zq_label",
    "zq_marker",
    "zq_field %d",
    "zq_text %s",
    "zq_span",
    "zq_traced",
];

/// Returns the words that occur in the loaded sections of the program, and the sections that hold the library's tables.
fn found(program: &Path) -> (Vec<&'static str>, Vec<String>) {
    let bytes = std::fs::read(program).expect("a program");
    let file = object::File::parse(&*bytes).expect("an object file");
    // Symbols and debug information, whose sections have no address, may still contain the names.
    let loaded: Vec<_> = file.sections().filter(|section| section.address() != 0).collect();
    let holds = |word: &&str| {
        loaded.iter().any(|section| {
            section.data().expect("the section's bytes").windows(word.len()).any(|window| window == word.as_bytes())
        })
    };
    let tables = loaded.iter().filter(|section| section.size() > 0).filter_map(|section| section.name().ok());
    let tables = tables.filter(|name| name.contains("linkme") || name.starts_with("tracepoint_"));
    (WORDS.into_iter().filter(holds).collect(), tables.map(str::to_owned).collect())
}

fn check(build: &Build) {
    let on = build.binary("on");
    let output = run(&on, &[]);
    assert_eq!(output.lines().count(), 19, "{output}");
    let (words, tables) = found(&on);
    assert_eq!(words, WORDS, "{build:?}: if these cannot be found, nothing can be missed below");
    assert_ne!(tables, [""; 0], "{build:?}");

    let off = build.binary("off");
    assert_eq!(run(&off, &[]), "", "{build:?}");
    assert_eq!(found(&off), (vec![], vec![]), "{build:?}");
}

#[test]
fn a_release_build_has_no_trace_of_tracing() {
    check(&Build::profile("release"));
}

#[test]
fn a_dev_build_has_no_trace_of_tracing() {
    check(&Build::dev());
}

//! All tracepoints of a program are listed before the first hit, however it is linked: those of a library, of a module without calls, of
//! generic and of unused functions.

use crate::fixture::{Build, listed, run, said};
use object::{Object, ObjectSection};
use std::path::Path;

const LISTED: [&str; 10] = [
    "marker library:called",
    "marker library:inside_generic",
    "marker library:library_mark",
    "marker library:never_called",
    "marker library:unreachable",
    "marker program:at_start",
    "tracepoint library:called",
    "tracepoint library:inside_generic",
    "tracepoint library:never_called",
    "tracepoint library:unreachable",
];

fn check(build: &Build) {
    let program = build.binary("binary");
    assert_eq!(build.is_gnu_ld(), !linked_by_lld(&program), "{build:?}: not the requested linker");
    let output = run(&program, &[]);
    let mut expected = LISTED.to_vec();
    expected.push("tracepoint program:at_start");
    assert_eq!(listed(&output), expected, "{build:?}");
    assert_eq!(said(&output), ["fired 7"], "{build:?}");
    let output = run(&build.test_binary("binary", "listing"), &["--nocapture"]);
    let expected: Vec<&str> = LISTED.into_iter().filter(|line| !line.contains("program:")).collect();
    assert_eq!(listed(&output), expected, "{build:?}, as a test");
}

/// Returns whether LLD linked the program: it leaves its name there.
fn linked_by_lld(program: &Path) -> bool {
    let bytes = std::fs::read(program).expect("a program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let comment = file.section_by_name(".comment").expect("the compiler's comment").data().expect("its bytes");
    comment.windows(3).any(|window| window == b"LLD")
}

#[test]
fn dev() {
    check(&Build::dev());
}

#[test]
fn release() {
    check(&Build::profile("release"));
}

#[test]
fn fat() {
    check(&Build::profile("fat"));
}

#[test]
fn dev_with_gnu_ld() {
    check(&Build::dev().gnu_ld());
}

#[test]
fn release_with_gnu_ld() {
    check(&Build::profile("release").gnu_ld());
}

#[test]
fn fat_with_gnu_ld() {
    check(&Build::profile("fat").gnu_ld());
}

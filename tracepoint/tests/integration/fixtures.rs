//! Crates like those of users, in `tests/fixtures`: built, linted and run by cargo.

use crate::fixture::{Build, cargo, listed, run, said};

#[test]
fn strict_crates_of_every_edition() {
    strict(&["-p", "edition2018", "-p", "edition2021", "-p", "edition2024"]);
}

#[test]
fn strict_crates_with_tracing_compiled_out() {
    strict(&["-p", "edition2024-off"]);
}

fn strict(packages: &[&str]) {
    cargo("build", packages);
    cargo("clippy", packages);
    cargo("doc", &[packages, &["--no-deps", "--document-private-items"]].concat());
}

#[test]
fn a_renamed_dependency() {
    let output = run(&Build::dev().binary("renamed"), &[]);
    assert_eq!(said(&output), ["1 one"]);
    assert_eq!(
        listed(&output),
        [
            "marker renamed:by_another_name",
            "marker renamed:half_begin",
            "marker renamed:half_end",
            "marker renamed:half_err",
            "marker renamed:marked",
            "marker renamed:one",
            "tracepoint renamed:by_another_name",
            "tracepoint renamed:half_begin",
            "tracepoint renamed:half_end",
            "tracepoint renamed:half_err",
            "tracepoint renamed:one",
        ]
    );
}

#[test]
fn a_program_without_tracepoints() {
    let output = run(&Build::dev().binary("empty"), &[]);
    assert_eq!(output, "no tracepoint is called `no:such`; names are written `provider:name`\n");
}

#[test]
fn a_module_that_is_loaded() {
    cargo("build", &["-p", "plugin"]);
    let host = Build::dev().binary("host");
    let module = host.with_file_name("libplugin.so");
    let output = run(&host, &[module.to_str().expect("a path in UTF-8")]);
    assert_eq!(listed(&output), ["tracepoint plugin:loaded", "tracepoint plugin:never_called"]);
    assert_eq!(said(&output), ["calls 1"]);
}

#[test]
fn a_third_party_sink() {
    strict(&["-p", "third-party-sink"]);
    let output = run(&Build::dev().binary("third-party-sink"), &[]);
    assert_eq!(output, "shop:opened 1\nshop:sold 3\nlost 0\n");
}

#[test]
fn a_third_party_probe() {
    strict(&["-p", "third-party-probe"]);
    let output = run(&Build::dev().binary("third-party-probe"), &[]);
    assert_eq!(output, "0 bits: 1\n1 bits: 1\n10 bits: 2\n13 bits: 1\nlargest 4096\n");
}

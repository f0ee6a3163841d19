//! The dependencies between the crates match the table in ARCHITECTURE.md, and the core's dependency tree stays small.

use std::collections::{BTreeMap, BTreeSet};
use tracepoint_house::packages::{Member, Packages, built_with, features_with};
use tracepoint_house::root;

/// The heading of the table in ARCHITECTURE.md.
const HEADING: &str = "| package | may depend on |";

/// The packages that a library which declares tracepoints may compile: nothing else may be added to the core.
const CORE: [&str; 10] = [
    "libc",
    "linkme",
    "linkme-impl",
    "proc-macro2",
    "quote",
    "strsim",
    "syn",
    "tracepoint-macros",
    "tracepoint-ring",
    "unicode-ident",
];

/// Maximum number of packages compiled for a session, including those of the workspace: each adds to the build time of every program.
const MAX_OF_A_SESSION: usize = 40;

/// The table: for each package, the packages of the workspace that it may depend on. `members` resolves names, which lack the prefix `tracepoint-`.
fn table(members: &BTreeMap<String, Member>) -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, rows) = text.split_once(HEADING).unwrap_or_else(|| panic!("ARCHITECTURE.md has no table `{HEADING}`"));
    let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
    let resolved = |name: &str| {
        let prefixed = format!("tracepoint-{name}");
        if members.contains_key(&prefixed) { prefixed } else { name.to_owned() }
    };
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split([',', ' ']).filter(|name| !name.is_empty() && *name != "–").map(resolved).collect()
    };
    let row = |line: &str| {
        let (packages, allowed) = line.trim_matches('|').split_once('|').expect("two columns");
        let allowed = names(allowed);
        names(packages).into_iter().map(move |package| (package, allowed.clone()))
    };
    rows.flat_map(row).collect()
}

#[test]
fn crates_depend_on_what_the_table_allows() {
    let members = Packages::read().members();
    let table = table(&members);
    let mut wrong = Vec::new();
    for (name, member) in members.iter().filter(|(_, member)| member.is_published) {
        match table.get(name) {
            None => wrong.push(format!("{name} is not in the table")),
            Some(allowed) => {
                wrong.extend(member.on_members.difference(allowed).map(|other| format!("{name} depends on {other}")));
            }
        }
    }
    wrong.extend(table.keys().filter(|name| !members.contains_key(*name)).map(|name| format!("{name} is no package")));
    assert!(wrong.is_empty(), "against the table in ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_core_stays_small() {
    let allowed: BTreeSet<_> =
        CORE.iter().map(|name| (*name).to_owned()).chain(["tracepoint-core".to_owned()]).collect();
    let tree = Packages::read().tree("tracepoint-core");
    let new: Vec<_> = tree.difference(&allowed).collect();
    assert!(new.is_empty(), "new below the core, which every instrumented library compiles: {new:?}");
}

#[test]
fn a_session_needs_few_packages() {
    let built = built_with("tracepoint", "session");
    assert!(built.len() <= MAX_OF_A_SESSION, "{}: {built:?}", built.len());
    let is_built = |name: &str| built.iter().any(|package| package.split(' ').next() == Some(name));
    assert!(is_built("tracepoint-session") && !is_built("tracepoint-wire"), "no network without a feature: {built:?}");
    for feature in ["dt", "stream", "udp"] {
        let more = built_with("tracepoint", feature);
        assert!(more.is_superset(&built), "`{feature}` is `session`, and more");
    }
}

/// Every program with a session compiles what its features enable.
#[test]
fn a_session_enables_no_feature_that_only_others_need() {
    let [session, control, udp] = ["session", "control", "udp"].map(|features| features_with("tracepoint", features));
    for (package, feature, others) in
        [("rustix", "net", &udp), ("tracepoint-reader", "control", &control), ("tracepoint-sinks", "control", &control)]
    {
        assert!(!session[package].contains(feature), "a session needs no `{feature}` of {package}");
        assert!(others[package].contains(feature), "`{feature}` of {package} is for others");
    }
    assert!(!control["tracepoint-session-spec"].contains("traces"), "only viewers need it");
}

#[test]
fn the_facade_alone_is_the_core() {
    let members = Packages::read().members();
    let needed: Vec<_> = members["tracepoint"].unconditional.iter().map(String::as_str).collect();
    let core = ["tracepoint-core", "tracepoint-macros", "tracepoint-ring"];
    assert!(needed.iter().all(|name| core.contains(name)), "a library without features compiles {needed:?}");
}

#[test]
fn the_examples_use_the_front_door() {
    let members = Packages::read().members();
    let allowed = ["datatrace", "tracepoint", "tracepoint-reader"];
    for package in ["tracepoint-examples", "tracepoint-async-examples", "tracepoint-treehash"] {
        let others = members[package].on_members.iter().filter(|name| !allowed.contains(&name.as_str()));
        assert_eq!(others.collect::<Vec<_>>(), <Vec<&String>>::new(), "users copy from {package}");
    }
}

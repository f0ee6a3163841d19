//! Comments and pages are in plain technical English, as far as counting can show it.
//!
//! Counted are turns of phrase that are frequent in translated text and rare in technical English: pronouns as subjects of definitions ("what
//! is told"), chains of relative clauses ("from which"), "that of", "go on" for "continue". A text below the limits may still be hard to read.

use regex::Regex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tracepoint_house::{root, rust_files};

/// Maximum number of such phrases per 10,000 words, for the comments of each crate and for each page.
const MAX_PHRASES: usize = 40;
/// Maximum number of doc comments that begin with a pronoun, in the whole repository.
const MAX_PRONOUNS: usize = 60;
/// Maximum share of the types of a library or a program, in percent, that a participle or a particle names.
const MAX_PARTICIPLES: usize = 4;
/// Shorter texts are not representative.
const MIN_WORDS: usize = 200;

const PHRASES: &[&str] = &[
    r"\b(but for|besides|beside)\b",
    r"\b(go|goes|gone|went|going) on\b",
    r"\b(told|tells|tell|(is|are) asked)\b",
    r"\b(what|whatever|who|whoever|that which) (is|are|was|were|has|have|had|can|cannot|must|does|do|comes|came|it|they|a|the)\b",
    r"\b(of|by|from|to|for|on|in) (which|whom)\b",
    r"\b(that|those) of\b",
    r"\b(is|are) no\b",
    r", as (it|they|does|do|is|are|a|the)\b",
    r", too\b",
];

/// Words that name no thing, besides those that end like participles.
const PARTICLES: &str = "Again Back Before Beginning Begun Both Bound Chosen Done Drawn Ends Far Fed Former Found Given Held Home Inside Kept Known Late \
    Left Lost Loud Made Met Next Other Rest Said Seen Sent Shown Sold Spent Taken Told Trouble Underway Way What Whence Which Whole Written";
/// Nouns that end like participles.
const NOUNS: [&str; 8] = ["Encoding", "Feed", "Mapping", "Need", "Padding", "Ring", "Seed", "String"];

/// Directories in the root that contain no text of the project.
const OTHERS: [&str; 2] = ["target", "docs"];

/// The Rust files of each directory in the root.
fn crates() -> BTreeMap<String, Vec<PathBuf>> {
    let entries = std::fs::read_dir(root()).expect("the repository").map(|entry| entry.expect("an entry"));
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let wanted =
        named.filter(|(name, path)| path.is_dir() && !name.starts_with('.') && !OTHERS.contains(&name.as_str()));
    let files = wanted.map(|(name, path)| {
        let is_source = |file: &PathBuf| !file.components().any(|part| part.as_os_str() == "target");
        (name, rust_files(&path).into_iter().filter(is_source).collect())
    });
    files.collect()
}

fn read(file: &PathBuf) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The doc comments of a file, a line each.
fn doc_comments(file: &PathBuf) -> String {
    let text = read(file);
    let lines = text.lines().map(str::trim_start);
    let comments = lines.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    comments.flat_map(|line| [line, "\n"]).collect()
}

/// The phrases per 10,000 words, without blocks of code, and the words.
fn density(text: &str) -> (usize, usize) {
    let prose: String = text.split("```").step_by(2).collect();
    let words = Regex::new("[A-Za-z]+").expect("an expression").find_iter(&prose).count();
    let count = |phrase: &&str| Regex::new(phrase).expect("an expression").find_iter(&prose).count();
    let phrases: usize = PHRASES.iter().map(count).sum();
    (10_000 * phrases / words.max(1), words)
}

fn assert_plain(texts: impl Iterator<Item = (String, String)>) {
    let measured = texts.map(|(name, text)| (name, density(&text)));
    let above = measured.filter(|(_, (density, words))| *density > MAX_PHRASES && *words >= MIN_WORDS);
    let above: Vec<_> = above.map(|(name, (density, _))| format!("{name}: {density}")).collect();
    assert!(above.is_empty(), "more than {MAX_PHRASES} translated phrases per 10,000 words: {above:#?}");
}

#[test]
fn the_comments_of_each_crate_are_plain() {
    let crates = crates();
    assert!(crates.len() > 20, "{:?}", crates.keys());
    assert_plain(crates.into_iter().map(|(name, files)| (name, files.iter().map(doc_comments).collect())));
}

#[test]
fn each_page_is_plain() {
    let in_docs = std::fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let named = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let pages = named.map(|name| root().join(name)).into_iter().chain(in_docs);
    let pages: Vec<_> = pages.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    assert!(pages.len() > 40, "{}", pages.len());
    assert_plain(pages.iter().map(|page| (page.display().to_string(), read(page))));
}

#[test]
fn doc_comments_name_their_subject() {
    let beginning = Regex::new(r"(?m)^\s*//[/!] (What|Who|Whether)\b").expect("an expression");
    let files: Vec<_> = crates().into_values().flatten().collect();
    let found: Vec<_> = files.iter().filter(|file| beginning.is_match(&read(file))).collect();
    let count: usize = found.iter().map(|file| beginning.find_iter(&read(file)).count()).sum();
    assert!(count <= MAX_PRONOUNS, "{count} doc comments begin with a pronoun: {found:#?}");
}

/// One word for one idea.
#[test]
fn bounds_are_called_max_and_min() {
    let bound = Regex::new(r"(?m)^\s*(pub(\(\w+\))? )?(const|static) (MOST|LEAST)(_|:)").expect("an expression");
    let files = crates().into_values().flatten();
    let found: Vec<_> = files.filter(|file| bound.is_match(&read(file))).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn types_are_named_by_nouns() {
    let declared = Regex::new(r"(?m)^\s*(?:pub(?:\(\w+\))? )?(?:struct|enum|trait) ([A-Z]\w*)").expect("an expression");
    let one_word = Regex::new("^[A-Z]+[a-z0-9]*$").expect("an expression");
    let particles: Vec<_> = PARTICLES.split_whitespace().collect();
    let names_no_thing = |name: &&String| {
        let like_participle = (name.ends_with("ed") || name.ends_with("ing")) && !NOUNS.contains(&name.as_str());
        one_word.is_match(name) && (like_participle || particles.contains(&name.as_str()))
    };
    let mut crates = crates();
    crates.retain(|name, _| !["benches", "examples", "fuzz", "models", "tests"].contains(&name.as_str()));
    for (name, files) in crates {
        let texts = files.iter().filter(|file| !file.components().any(|part| part.as_os_str() == "tests")).map(read);
        let types: Vec<String> = texts
            .flat_map(|text| declared.captures_iter(&text).map(|found| found[1].to_owned()).collect::<Vec<_>>())
            .collect();
        let found: Vec<_> = types.iter().filter(names_no_thing).collect();
        assert!(found.len() * 100 <= types.len() * MAX_PARTICIPLES, "{name}, {} types: {found:?}", types.len());
    }
}

//! Links between Markdown files lead to existing files and headings.

use super::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Directories without Markdown files of this project.
const PASSED_OVER: [&str; 3] = ["target", ".git", "corpus"];

fn markdown(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !PASSED_OVER.iter().any(|skipped| name == *skipped) {
            markdown(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The targets of `[text](target)`, with code spans left out.
fn targets(line: &str) -> Vec<&str> {
    let spoken = line.split('`').step_by(2);
    let links = spoken.flat_map(|part| part.split("](").skip(1));
    links.filter_map(|rest| rest.split([')', ' ']).next()).collect()
}

/// The anchors of a page's headings: lower case, spaces as hyphens, punctuation left out.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let mut seen = BTreeMap::<String, usize>::new();
    let mut anchors = BTreeSet::new();
    for heading in headings {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let anchor: String = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        let count = seen.entry(anchor.clone()).or_default();
        anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

#[test]
fn link_targets_exist() {
    let root = root();
    let mut files = Vec::new();
    markdown(&root, &mut files);
    assert!(files.len() > 20, "the Markdown files of the repository were found: {files:?}");
    let mut broken = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a Markdown file");
        for target in prose(&text).flat_map(targets).filter(|target| !target.contains("://")) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { file.clone() } else { file.with_file_name(path) };
            // The book is built from `docs/` alone.
            let found = path.exists()
                && !(target.starts_with("..") && file.starts_with(root.join("docs")))
                && (anchor.is_empty() || fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !found {
                broken.push(format!("{}: {target}", file.strip_prefix(&root).unwrap_or(file).display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn paths_of_pages_in_code_exist() {
    let root = root();
    let mut broken = Vec::new();
    each_source(&root, &mut |path, text| {
        for mention in text.split("docs/").skip(1) {
            let length = mention.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(mention.len());
            let (page, rest) = mention.split_at(length);
            if rest.starts_with(".md") && !root.join(format!("docs/{page}.md")).exists() {
                broken.push(format!("{}: docs/{page}.md", path.strip_prefix(&root).unwrap_or(path).display()));
            }
        }
    });
    assert!(broken.is_empty(), "pages that do not exist:\n{}", broken.join("\n"));
}

fn each_source(directory: &Path, see: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).expect("a directory of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !PASSED_OVER.iter().any(|skipped| name == *skipped) {
            each_source(&path, see);
        } else if path.extension().is_some_and(|extension| ["rs", "sh", "toml"].iter().any(|kind| extension == *kind)) {
            see(&path, &fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

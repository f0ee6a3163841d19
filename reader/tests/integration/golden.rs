//! Ring files of all versions of the layout, written by their version of the tracer, are still read in the same way.
//!
//! `golden/VERSION/STATE` is the directory of a process, `golden/VERSION/STATE.txt` the expected text: `TRACEPOINT_GOLDEN=1` writes
//! the missing texts.

use std::path::{Path, PathBuf};
use std::{env, fs};
use tracepoint_reader::account::Account;
use tracepoint_reader::text::{Style, TextOptions, TextWriter, TimeFormat};
use tracepoint_reader::{Trace, recover, verify};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Events and losses of a process, and its account.
fn text(process: &Path) -> String {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let recovered = recover(process, &out).unwrap();
    assert!(recovered.is_complete(), "{recovered:?}");
    let report = verify(&out).unwrap();
    assert!(report.passed(), "{:?}", report.failures().collect::<Vec<_>>());
    let mut options = TextOptions::from(Style::Babeltrace);
    options.time = TimeFormat::Utc;
    let mut writer = TextWriter::new(options);
    let mut text = Vec::new();
    for item in Trace::open(&out).unwrap().items() {
        writer.write_item(&mut text, &item).unwrap();
    }
    text.extend(Account::open(&out).unwrap().to_json());
    String::from_utf8(text).unwrap().replace(&format!("{}/", out.display()), "")
}

#[test]
fn rings_of_all_versions_are_read() {
    let mut read = 0;
    for version in directories(&golden()) {
        for process in directories(&version) {
            let expected = process.with_extension("txt");
            let found = text(&process);
            if !expected.exists() && env::var_os("TRACEPOINT_GOLDEN").is_some() {
                fs::write(&expected, &found).unwrap();
            }
            let expected = fs::read_to_string(&expected).unwrap();
            for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
                assert_eq!(found, expected, "{}, line {}", process.display(), number + 1);
            }
            assert_eq!(found.len(), expected.len(), "{}", process.display());
            read += 1;
        }
    }
    assert!(read >= 2, "the files are there");
}

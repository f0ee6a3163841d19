//! `tracectl dt` on files of both versions, on damaged ones, and on other files.

use datatrace::{Format, Layout, TraceOptions, Version, tagged};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn dt(arguments: &[&str], path: &Path) -> (Option<i32>, Vec<u8>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracectl")).arg("dt").args(arguments).arg(path).output().unwrap();
    (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

fn text(arguments: &[&str], path: &Path) -> (Option<i32>, String, String) {
    let (code, out, err) = dt(arguments, path);
    (code, String::from_utf8(out).unwrap(), err)
}

fn objects(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A byte stream without a description: entries of 7 bytes in slots of 16, which have wrapped.
fn stream(place: &TempDir) -> PathBuf {
    let object = TraceOptions::new(Layout::new(16, 3)).directory(place.path()).create("stream").unwrap();
    (0u16..9).try_for_each(|n| object.trace3(n, b'*', 0x0A00_0000 + u32::from(n))).unwrap();
    object.append_postamble(*b"counters: 9").unwrap();
    object.path().to_owned()
}

/// The same entries, framed and with a description.
fn framed(place: &TempDir) -> PathBuf {
    let layout = Layout::new(24, 3).version(Version::Framed);
    let object = TraceOptions::new(layout).directory(place.path()).create("framed").unwrap();
    let format: Format = "n:u16 mark:u8/x addr:u32".parse().unwrap();
    object.append_postamble(format.to_postamble()).unwrap();
    object.append_postamble(tagged(*b"note", b"hello")).unwrap();
    (0u16..9).try_for_each(|n| object.trace3(n, b'*', 0x0A00_0000 + u32::from(n))).unwrap();
    object.path().to_owned()
}

#[test]
fn info_shows_header_slots_and_postambles() {
    let place = tempfile::tempdir().unwrap();
    let (code, out, err) = text(&["info"], &framed(&place));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let expected = "\
version         2, framed
bufferSize      24
numberBuffers   3
lastBufferIdx   1
lastBufferSize  15
entries         35 bytes in 3 slots, oldest first from slot 2
format          n:u16 mark:u8/x addr:u32
damaged         0
postambles      61 bytes at byte 92
  form  24 bytes at byte 92
  note  5 bytes at byte 132
";
    assert_eq!(out, expected);
    let (code, out, err) = text(&["info", "--json"], &stream(&place));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let object = &objects(&out)[0];
    let (location, size) = (&object["postamble_location"], &object["postamble_size"]);
    assert_eq!((location, size, &object["version"]), (&json!(68), &json!(11), &json!(1)));
    assert_eq!((&object["oldest"], &object["entries_bytes"], &object["damage"]), (&json!(1), &json!(47), &json!([])));
}

#[test]
fn dump_uses_the_format_in_the_file() {
    let place = tempfile::tempdir().unwrap();
    let path = framed(&place);
    let (code, out, err) = text(&["dump"], &path);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let expected: Vec<_> = (4..9).map(|n| format!("n = {n}, mark = 0x2a, addr = {}", 0x0A00_0000 + n)).collect();
    assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    let (_, out, _) = text(&["dump", "--json", "--slot", "1"], &path);
    let fields = json!({ "n": 8, "mark": "0x2a", "addr": 0x0A00_0008 });
    assert_eq!(objects(&out), [json!({ "slot": 1, "offset": 52, "fields": fields })]);
    let (_, out, _) = text(&["dump", "--format", "[7]", "--slot", "1"], &path);
    assert_eq!(out, "arg1 = 08002a0800000a\n");
    let (code, out, err) = text(&["dump", "--slot", "9"], &path);
    assert_eq!((code, out.as_str()), (Some(3), ""));
    assert!(err.contains("has no slot 9: it has 3, and `tracectl dt info"), "{err}");
}

#[test]
fn dump_shows_a_byte_stream_that_has_wrapped() {
    let place = tempfile::tempdir().unwrap();
    let path = stream(&place);
    let (code, out, err) = text(&["dump"], &path);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    // 63 bytes were written; the oldest remaining one is byte 16, within the third entry.
    assert!(out.starts_with("slot 1: 16 bytes at byte 36\n00000024  2a 02 00 00 0a 03 00 2a"), "{out}");
    assert!(out.contains("  03 00 00 0a 04 00 2a 04  |*......*......*.|\n"), "{out}");
    let expected: Vec<_> = (3..9).map(|n| format!("n = {n}, mark = 42, addr = 0xa00000{n}")).collect();
    for skip in [&[][..], &["--skip", "5"]] {
        let (code, out, err) = text(&[&["dump", "--format", "n:u16 mark:u8 addr:u32/x"], skip].concat(), &path);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert_eq!(out.lines().collect::<Vec<_>>(), expected);
    }
    // The writer was killed when a slot was full: the last entry has no end.
    let mut bytes = fs::read(&path).unwrap();
    bytes[16] = 16;
    let killed = place.path().join("killed.dt");
    fs::write(&killed, bytes).unwrap();
    let (_, _, err) = text(&["dump", "--format", "n:u16 mark:u8 addr:u32"], &killed);
    assert!(err.contains("its oldest slot may begin within an entry: see --skip"), "{err}");
}

#[test]
fn postambles_are_shown_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let path = stream(&place);
    assert_eq!(dt(&["postamble", "--raw"], &path), (Some(0), b"counters: 9".to_vec(), String::new()));
    let line = "00000044  63 6f 75 6e 74 65 72 73  3a 20 39                 |counters: 9|\n";
    assert_eq!(text(&["postamble"], &path), (Some(0), line.into(), String::new()));
    let (_, out, _) = text(&["postamble", "--json"], &path);
    let path = path.to_string_lossy();
    let expected = json!({ "path": path, "offset": 68, "length": 11, "hex": "636f756e746572733a2039" });
    assert_eq!(objects(&out), [expected]);
}

#[test]
fn a_damaged_slot_is_reported_and_the_others_are_shown() {
    let place = tempfile::tempdir().unwrap();
    let path = framed(&place);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20 + 24 * 2 + 10] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (code, out, err) = text(&["dump"], &path);
    assert_eq!((code, out.lines().count()), (Some(1), 3));
    assert!(err.contains("framed.dt: slot 2, byte 68: its 14 bytes do not have the checksum"), "{err}");
    let (code, out, _) = text(&["info", "--json"], &path);
    assert_eq!((code, objects(&out)[0]["damage"].as_array().unwrap().len()), (Some(1), 1));
}

#[test]
fn other_files_end_with_exit_code_3() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x");
    fs::write(&path, b"#!/bin/sh\necho this is no trace\n").unwrap();
    for verb in ["info", "dump", "postamble"] {
        let (code, out, err) = text(&[verb], &path);
        assert_eq!((code, out.as_str()), (Some(3), ""));
        assert!(err.contains("x: byte 0: this is no dt file"), "{err}");
        let (code, _, err) = text(&[verb], place.path());
        assert_eq!(code, Some(3));
        assert!(err.contains("not a regular file; name a dt file"), "{err}");
        let (code, _, err) = text(&[verb], &place.path().join("missing"));
        assert_eq!(code, Some(3));
        assert!(err.contains("missing: there is no such file; name a dt file"), "{err}");
    }
    let (code, _, err) = text(&["dump", "--format", "n:int"], &path);
    assert_eq!(code, Some(2));
    assert!(err.contains("column 1: `int` is not a type"), "{err}");
}

#[test]
fn help_has_examples_and_exit_codes() {
    for verb in ["info", "dump", "postamble"] {
        let (code, out, _) = text(&[verb], Path::new("--help"));
        assert_eq!(code, Some(0));
        assert!(out.contains("Examples:") && out.contains("Exit codes:"), "{out}");
    }
}

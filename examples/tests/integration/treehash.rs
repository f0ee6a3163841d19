//! The program run as users do, on a difficult tree, with 8 threads. Its trace, as read by babeltrace2, is compared with
//! expected events computed independently.

use crate::common::tree::{self, Tree};
use crate::common::{Plain, assert_same, babeltrace, bytes, expected, program, sorted};
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The program.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| program::built("treehash"));

fn run(arguments: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(&*PROGRAM);
    arguments(&mut command);
    command.output().unwrap()
}

/// Runs the program as a user who cannot read closed files.
fn run_as_nobody(tree: &Tree, arguments: impl FnOnce(&mut Command)) -> Output {
    if !tree::is_root() {
        return run(arguments);
    }
    let mut command = Command::new(program::copied(&PROGRAM, tree));
    command.uid(65_534).gid(65_534).current_dir("/").env_remove("XDG_RUNTIME_DIR");
    arguments(&mut command);
    command.output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Removes unpredictable data: chunks, and the texts of messages.
fn foreseeable(events: Vec<Plain>) -> Vec<Plain> {
    let without_words = |event| match event {
        Plain::ChunkRead { .. } => None,
        Plain::Error { path, kind, .. } => Some(Plain::Error { path, kind, message: String::new() }),
        other => Some(other),
    };
    sorted(events.into_iter().filter_map(without_words).collect())
}

#[test]
fn the_trace_has_the_expected_events() {
    let tree = Tree::new();
    let out = tree.out("trace");
    let output = run_as_nobody(&tree, |c| {
        c.args(["--threads", "8", "--json", "--out"]).arg(&out).arg(&tree.root);
    });
    let report = json(&output);
    let recorded = babeltrace::events(&out);
    let expected = sorted(expected::events(&tree.root, true));
    assert_same("the trace", &foreseeable(recorded.clone()), &expected);

    // The chunks of each file add up, and only the last one is short.
    let sizes = || {
        expected.iter().filter_map(|event| match event {
            Plain::FileHashed { size, .. } => Some(*size),
            _ => None,
        })
    };
    let chunks: Vec<u32> = recorded
        .iter()
        .filter_map(|event| match event {
            Plain::ChunkRead { len, .. } => Some(*len),
            _ => None,
        })
        .collect();
    assert_eq!(chunks.len() as u64, sizes().map(|size| size.div_ceil(64 << 10)).sum::<u64>());
    assert_eq!(chunks.iter().map(|len| u64::from(*len)).sum::<u64>(), sizes().sum::<u64>());

    // Check the program's own counts of the tree and of the recording.
    assert_eq!(report["files"], sizes().count());
    assert_eq!(report["bytes"], sizes().sum::<u64>());
    assert_eq!(report["links"], 5);
    assert_eq!(report["errors"], serde_json::json!({"permission": 2, "vanished": 0, "loop": 3, "other": 0}));
    assert_eq!(report["lost"], serde_json::json!({}));
    assert_eq!(report["out"], text(&bytes(&out)));
    let count = |wanted: fn(&Plain) -> bool| recorded.iter().filter(|event| wanted(event)).count();
    for (name, count) in [
        ("dir_entered", count(|e| matches!(e, Plain::DirEntered { .. }))),
        ("file_opened", count(|e| matches!(e, Plain::FileOpened { .. }))),
        ("chunk_read", count(|e| matches!(e, Plain::ChunkRead { .. }))),
        ("file_hashed", count(|e| matches!(e, Plain::FileHashed { .. }))),
        ("link_skipped", count(|e| matches!(e, Plain::LinkSkipped { .. }))),
        ("error", count(|e| matches!(e, Plain::Error { .. }))),
    ] {
        let events = report["events"].as_array().unwrap();
        let counts = events.iter().find(|event| event["name"] == format!("treehash:{name}")).unwrap();
        assert_eq!((&counts["fired"], &counts["recorded"]), (&count.into(), &count.into()), "{name}");
    }
}

#[test]
fn the_toolchain_is_hashed_without_loss() {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = PathBuf::from(text(&sysroot.stdout).trim_end());
    // By default the program hashes a separate toolchain, but not one that is installed in the system's own directories.
    let root = if sysroot.starts_with("/usr") { sysroot.join("lib/rustlib") } else { sysroot.clone() };
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("trace");
    let report = json(&run(|c| {
        c.args(["--threads", "8", "--json", "--out"]).arg(&out);
        if root != sysroot {
            c.arg(&root);
        }
    }));
    assert_eq!(report["lost"], serde_json::json!({}));
    let expected = sorted(expected::events_without_trouble(&root));
    assert_same("the trace", &foreseeable(babeltrace::events(&out)), &expected);
}

#[test]
fn the_result_is_the_same_without_tracing() {
    let tree = Tree::new();
    let [on, off] = ["on", "off"].map(|mode| {
        json(&run_as_nobody(&tree, |c| {
            c.args(["--threads", "8", "--json"]);
            if mode == "on" {
                c.arg("--out").arg(tree.out("trace"))
            } else {
                c.arg("--off")
            };
            c.arg(&tree.root);
        }))
    });
    for same in ["files", "bytes", "directories", "links", "errors"] {
        assert_eq!(on[same], off[same], "{same}");
    }
    assert!(off["elapsed"].is_f64() && on["elapsed"].is_f64());
    assert_eq!((&off["out"], &off["events"], &off["lost"]), (&Value::Null, &Value::Null, &Value::Null));
}

#[test]
fn a_circular_file_keeps_the_newest_and_balances() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("tree");
    std::fs::create_dir(&root).unwrap();
    (0..50).for_each(|n| std::fs::write(root.join(format!("file {n}")), n.to_string()).unwrap());
    let file = place.path().join("newest.dt");
    let recorded = |slots: &str| {
        let _ = std::fs::remove_file(&file);
        json(&run(|c| {
            c.args(["--threads", "2", "--json", "--dt-slots", slots, "--dt"]).arg(&file).arg(&root);
        }))
    };
    let events = |path: &PathBuf| {
        let trace = tracepoint_reader::Trace::open(path).unwrap();
        trace.items().filter(|item| matches!(item, tracepoint_reader::Item::Event(_))).count() as u64
    };
    let report = recorded("64");
    assert_eq!((&report["lost"], &report["out"]), (&serde_json::json!({}), &text(&bytes(&file)).into()));
    assert_eq!(events(&file), 1 + 3 * 50);
    // Three threads write one packet each, and there is room for one.
    let report = recorded("1");
    assert_eq!(events(&file) + report["lost"]["overwritten"].as_u64().unwrap(), 1 + 3 * 50);
    assert!(tracepoint_reader::verify(&file).unwrap().passed());
    let output = run(|c| {
        c.args(["--dt"]).arg(&file).arg(&root);
    });
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr).matches("exists already; choose another name").count(), 1, "{output:?}");
}

#[test]
fn links_are_followed_on_request() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("tree");
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/file"), "content").unwrap();
    symlink("../..", root.join("a/b/up")).unwrap();
    symlink("itself", root.join("itself")).unwrap();
    symlink("not here", root.join("nowhere")).unwrap();
    symlink("a/file", root.join("same file")).unwrap();
    let out = place.path().join("trace");
    let output = run(|c| {
        c.args(["--follow", "--json", "--out"]).arg(&out).arg(&root);
    });
    let report = json(&output);
    assert_eq!((&report["files"], &report["links"]), (&2.into(), &0.into()));
    let errors: Vec<_> = babeltrace::events(&out)
        .into_iter()
        .filter_map(|event| match event {
            Plain::Error { path, kind, .. } => Some((path, kind)),
            _ => None,
        })
        .collect();
    let at = |name: &str, kind: &str| (bytes(&root.join(name)), kind.to_owned());
    assert_eq!(errors, [at("a/b/up", "loop"), at("itself", "loop"), at("nowhere", "vanished")]);
}

#[test]
fn the_report_shows_the_trace_and_how_to_open_it() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("tree");
    std::fs::create_dir(&root).unwrap();
    (0..50).for_each(|n| std::fs::write(root.join(format!("file {n}")), n.to_string()).unwrap());
    let output = run(|c| {
        c.arg(&root).env("TMPDIR", place.path());
    });
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "", "no bar where there is no terminal");
    let report = text(&output.stdout);
    let out = report.lines().find_map(|line| line.strip_prefix("  babeltrace2 ")).expect("how to open it");
    assert!(out.starts_with(place.path().to_str().unwrap()), "a new directory for temporary files: {out}");
    assert!(report.contains(&format!("  cargo run -p tracectl -- view {out}\n")));
    assert_eq!(babeltrace::events(out.as_ref()).len(), 1 + 3 * 50);
    let row = |name: &str| report.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    let words = |row: &str| row.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&row("treehash:file_hashed")), ["treehash:file_hashed", "50", "50", "0"]);
    assert!(row("written:").ends_with("lost: none"));
    let lines: Vec<_> = report.lines().filter(|line| line.contains("] treehash:")).collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].contains("treehash:dir_entered") && lines[5].contains("treehash:file_hashed"), "{report}");
    assert!(report.contains(" 145 more "), "{report}");
}

#[test]
fn errors_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("missing");
    for (arguments, code, message) in [
        (vec![missing.as_os_str()], 1, "name a directory that you may read"),
        (vec!["--out".as_ref(), "/".as_ref(), place.path().as_os_str()], 1, "not empty"),
        (vec!["--threads".as_ref(), "0".as_ref()], 2, "--threads"),
        (vec!["--off".as_ref(), "--out".as_ref(), missing.as_os_str()], 2, "cannot be used with"),
    ] {
        let output = run(|c| {
            c.args(arguments);
        });
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stderr).contains(message), "{output:?}");
        assert!(output.stdout.is_empty() && !missing.exists());
    }
}

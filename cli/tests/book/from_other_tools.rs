//! The commands of the pages `docs/from-*.md`: ours, and those of other tools if they are installed.
//!
//! A block of commands is marked by the comment before it: `<!-- TOOL: LINES -->`. The blocks of one tool on one page run in one directory, one
//! after the other, and each must print this number of lines that contain `answer`.

use crate::program;
use crate::skip::skip;
use std::path::Path;
use std::process::Command;

struct Block {
    script: String,
    lines: usize,
}

/// The blocks of a page for a tool.
fn blocks(page: &str, tool: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let begin = format!("<!-- {tool}: ");
    let block = |part: &str| {
        let (lines, rest) = part.split_once(" -->\n```sh\n").expect("a block of commands");
        let (script, _) = rest.split_once("\n```").expect("its end");
        Block { script: script.to_owned(), lines: lines.parse().unwrap() }
    };
    let found: Vec<_> = text.split(&begin).skip(1).map(block).collect();
    assert!(!found.is_empty(), "{page} has no commands for {tool}");
    found
}

/// Runs the blocks of a page in a shell that has run `before`.
fn run(page: &str, tool: &str, place: &Path, shell: &[&str], before: &str) {
    let blocks = blocks(page, tool);
    let group = |(number, block): (usize, &Block)| format!("{{\n{}\n}} >out.{number} 2>err.{number}", block.script);
    let groups: Vec<_> = blocks.iter().enumerate().map(group).collect();
    let script = format!("set -eu\n{before}\n{}\n", groups.join("\n"));
    let tracectl = Path::new(env!("CARGO_BIN_EXE_tracectl")).parent().unwrap().display();
    let path = format!("{tracectl}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).args(["bash", "-c", &script]).current_dir(place).env("PATH", path);
    let output = command.env("TRACEPOINT_RUN_DIR", place.join("run")).output().unwrap();
    let errors = |number| std::fs::read_to_string(place.join(format!("err.{number}"))).unwrap_or_default();
    let all: String = (0..blocks.len()).map(errors).collect();
    assert!(output.status.success(), "{page}, {tool}: {}{all}", String::from_utf8_lossy(&output.stderr));
    for (number, block) in blocks.iter().enumerate() {
        let out = std::fs::read_to_string(place.join(format!("out.{number}"))).unwrap();
        // Except the lines that `lttng` prints about its own commands.
        let is_counted = |line: &&str| line.contains("answer") && !line.to_lowercase().contains("event shop:");
        let lines = out.lines().filter(is_counted).count();
        assert_eq!(lines, block.lines, "{page}, {tool}: {}\n{out}{}", block.script, errors(number));
        assert!(!out.trim().is_empty(), "{page}, {tool}: {} prints nothing", block.script);
    }
}

fn ours(page: &str) {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let this = std::env::current_exe().unwrap();
    let program = program::script(&this.display().to_string());
    std::fs::write(place.path().join("shop"), program).unwrap();
    run(page, "ours", place.path(), &["env"], "chmod +x shop; mkdir -m 700 run");
}

/// The commands of another tool, with a C program. The test is skipped if this machine lacks a requirement.
fn theirs(page: &str, tool: &str, shell: &[&str], probe: &[&str], before: &str) {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let works = |arguments: &[&str]| {
        let mut command = Command::new(arguments[0]);
        command.args(&arguments[1..]).current_dir(place.path()).output().is_ok_and(|output| output.status.success())
    };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/book/from_other_tools");
    for name in ["shop.c", "shop_tp.h"] {
        std::fs::copy(sources.join(name), place.path().join(name)).unwrap();
    }
    if !works(&["cc", "-O1", "-I.", "-o", "shop", "shop.c", "-llttng-ust", "-ldl"]) {
        return skip("a program with LTTng-UST cannot be built", "scripts/setup.sh --ci installs liblttng-ust-dev");
    }
    if !works(probe) {
        return skip(
            &format!("`{}` does not work", probe.join(" ")),
            "scripts/setup.sh --ci installs it; it needs root",
        );
    }
    run(page, tool, place.path(), shell, before);
}

#[test]
fn tracing() {
    ours("from-tracing.md");
}

#[test]
fn lttng() {
    ours("from-lttng.md");
    // A separate session daemon; root's has its sockets in /run.
    let daemon = "
        mount -t tmpfs none /run
        export LTTNG_HOME=$PWD
        trap 'kill $(cat pid)' EXIT
        lttng-sessiond --no-kernel --daemonize --pidfile=$PWD/pid";
    let apart = ["unshare", "--mount"];
    theirs("from-lttng.md", "lttng", &apart, &["unshare", "--mount", "lttng-sessiond", "--version"], daemon);
}

#[test]
fn perf_and_bpftrace() {
    ours("from-perf.md");
    theirs("from-perf.md", "bpftrace", &["env"], &["bpftrace", "-e", "BEGIN { exit(); }"], "");
    let probe = ["bash", "-c", "perf probe -q -x ./shop answer && perf probe -q -d 'probe_shop:answer'"];
    theirs("from-perf.md", "perf", &["env"], &probe, "");
}

//! Runs each command of the pages, in the order of the page, on an isolated machine: namespaces for processes, mounts, the network and the
//! host name, in which the program of the pages serves. A command that runs until Ctrl-C is interrupted after two seconds, when no process has
//! anything to do. All must succeed.

use crate::skip::skip;
use crate::{pages, program};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The hosts named in the pages; all of them are this machine.
const HOSTS: &str = "127.0.0.1 localhost collector.lan broker.lan edge.lan\n";

/// Runs before the commands of a page. `$1` is the directory of the test.
const MACHINE: &str = r#"
place=$1
hostname vm
ip link set lo up
mount --bind $place/hosts /etc/hosts
for dir in /run /srv /var/tmp /tmp; do mount -t tmpfs none $dir; done
mkdir -m 700 -p /run/user/1000
unset TRACEPOINT_RUN_DIR XDG_STATE_HOME
export HOME=/tmp/home XDG_RUNTIME_DIR=/run/user/1000 PATH=$place/bin:$PATH NO_COLOR=1 LIMIT=2
mkdir -p $HOME/.cargo/bin && ln -s $place/bin/tracectl $HOME/.cargo/bin && cd $HOME
ln -s $place/bin/server server && ln -s $place/bin/server till
sudo() { "$@"; }
number=0
# Runs the command of a line of the page; its words are the function `command`.
run() { # line, the text of the command, its exit status
    number=$((number + 1))
    command >$place/out.$number 2>$place/err.$number
    local status=$?
    case $2 in tracectl*jq*) grep -qvx null $place/out.$number || status="$status, and nothing is printed" ;; esac
    [ "$status" = $3 ] && return
    echo "line $1: $2: exit status $status" >&2
    tail -n 20 $place/out.$number $place/err.$number >&2
    exit 1
}
server serve &
served=$!
until tracectl list | grep -q shop:answered; do sleep 0.1; done
"#;

/// Begins the script of `tracectl`, which the rest of the script executes in its own process: interrupts it after `LIMIT` seconds, as soon as it is
/// found to be waiting, with all other processes, three times in a row. On a busy machine, a command that ends by itself may take longer.
const TRACECTL: &str = r#"#!/bin/bash
{
    sleep $LIMIT
    looks=0
    while [ $looks -lt 3 ] && kill -0 $$; do
        looks=$((looks + 1))
        # This process itself runs: it looks without starting another one.
        for status in /proc/[0-9]*/task/[0-9]*/status; do
            case $status in /proc/$BASHPID/*) continue ;; esac
            while read -r name value _; do
                [ "$name" = State: ] || continue
                case $value in R | D) looks=0 ;; esac
                break
            done <$status
        done
        sleep 0.05
    done
    kill -INT $$
} </dev/null >/dev/null 2>&1 &
exec"#;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Runs the commands of a page.
fn run(page: &str) {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = place.path();
    let bin = path.join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(path.join("hosts"), HOSTS).unwrap();
    // Other names for the two programs, because the test machine may hide their directories.
    let (real_tracectl, real_program) = (path.join("tracectl"), path.join("program"));
    for name in [&real_tracectl, &real_program] {
        std::fs::write(name, "").unwrap();
    }
    executable(&bin.join("tracectl"), &format!("{TRACECTL} {} \"$@\"\n", real_tracectl.display()));
    executable(&bin.join("server"), &program::script(&real_program.display().to_string()));
    let mut script = format!(
        "mount --bind {} {} && mount --bind {} {} || exit\n{MACHINE}",
        env!("CARGO_BIN_EXE_tracectl"),
        real_tracectl.display(),
        std::env::current_exe().unwrap().display(),
        real_program.display(),
    );
    let mut count = 0;
    for block in pages::blocks(page) {
        if !block.has_commands() || block.is_of_other_tools() || block.not_run().is_some() {
            continue;
        }
        for command in block.commands() {
            let text = command.text.replace("4242", "$served");
            let text = if command.in_background {
                format!("LIMIT=60\n{} &\nLIMIT=2\nsleep 0.3", text.trim_end_matches('&'))
            } else {
                text
            };
            writeln!(script, "command() {{\n{text}\n}}\nrun {} {} {}", command.line, quoted(&text), command.status)
                .unwrap();
            count += 1;
        }
    }
    assert!(count > 0, "{page} has no command that runs");
    let namespaces = ["--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let mut unshare = Command::new("unshare");
    let output = unshare.args(namespaces).args(["bash", "-c", &script, "page"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{page}: {}", String::from_utf8_lossy(&output.stderr));
}

fn executable(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// True if this machine supports the required namespaces.
fn has_namespaces() -> bool {
    let works = Command::new("unshare").args(["--mount", "--net", "--uts", "--pid", "--fork", "true"]).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skip("namespaces cannot be made", "Run it as root");
    }
    works
}

macro_rules! pages {
    ($($name:ident: $page:literal),* $(,)?) => {
        const RUN: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            if has_namespaces() {
                run($page);
            }
        })*
    };
}

pages! {
    readme: "README.md",
    channels: "docs/channels.md",
    collector: "docs/collector.md",
    control: "docs/control.md",
    dt_files: "docs/dt-files.md",
    export: "docs/export.md",
    first_steps: "docs/first-steps.md",
    probes: "docs/probes.md",
    production: "docs/production.md",
    reading: "docs/reading.md",
    recovery: "docs/recovery.md",
    report: "docs/report.md",
    service: "docs/service.md",
    spans: "docs/spans.md",
    triggers: "docs/triggers.md",
    udp: "docs/udp.md",
}

#[test]
fn the_page_of_commands_has_each_verb() {
    let help = Command::new(env!("CARGO_BIN_EXE_tracectl")).arg("--help").output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let verbs = help.lines().skip_while(|line| *line != "Record:").take_while(|line| *line != "Options:");
    let verbs = verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let page = std::fs::read_to_string(pages::root().join("docs/commands.md")).unwrap();
    let missing: Vec<_> = verbs.clone().filter(|verb| !page.contains(&format!("`{verb}`"))).collect();
    assert!(missing.is_empty() && verbs.count() > 20, "docs/commands.md lacks {missing:?}");
}

#[test]
fn each_block_is_run_or_says_why_not() {
    let mut left = Vec::new();
    for page in pages::all() {
        for block in pages::blocks(&page).iter().filter(|block| block.has_commands() || block.is_left_out()) {
            let runs = block.has_commands() && (RUN.contains(&page.as_str()) || block.is_of_other_tools());
            if !runs && block.not_run().is_none() {
                left.push(format!("{page}:{}", block.line));
            }
        }
    }
    assert!(
        left.is_empty(),
        "blocks that neither run nor have `<!-- not run: REASON -->` before them:\n{}",
        left.join("\n")
    );
}

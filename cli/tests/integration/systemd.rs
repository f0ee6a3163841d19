//! The units in `examples/systemd`: systemd accepts them and rates them as hardened, and their commands work within their restrictions.

use crate::skip::skip;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome = Result<(), Box<dyn Error>>;

fn units() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/systemd");
    let paths = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let mut units = paths.collect::<Result<Vec<_>, _>>()?;
    units.retain(|path| path.extension().is_some_and(|extension| extension == "service"));
    assert_eq!(units.len(), 3, "{units:?}");
    Ok(units)
}

/// True if `systemd-analyze` is installed.
fn has_systemd() -> bool {
    let is_there = Command::new("systemd-analyze").arg("--version").output().is_ok();
    if !is_there {
        skip("systemd-analyze is not installed", "Install the package systemd (`scripts/setup.sh`)");
    }
    is_there
}

/// The output of `systemd-analyze`.
fn analyze(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new("systemd-analyze").args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn systemd_accepts_the_units() -> Outcome {
    if !has_systemd() {
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let mut copies = Vec::new();
    for unit in units()? {
        // The program must exist: systemd refuses a unit whose program is missing.
        let text = fs::read_to_string(&unit)?.replace("/usr/local/bin/tracectl", env!("CARGO_BIN_EXE_tracectl"));
        let copy = place.path().join(unit.file_name().ok_or("no name")?);
        fs::write(&copy, text.replace("/usr/local/bin/server", "/bin/true"))?;
        copies.push(copy);
    }
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&copies).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let about_ours: Vec<_> =
        said.lines().filter(|line| line.contains("tracectl") || line.contains("server.service")).collect();
    assert!(output.status.success() && about_ours.is_empty(), "{said}");
    Ok(())
}

/// The rating ranges from 0 (safe) to 10.
#[test]
fn systemd_finds_the_units_hardened() -> Outcome {
    if !has_systemd() {
        return Ok(());
    }
    for unit in units()? {
        let text = analyze(&["security", "--offline=true", "--no-pager", unit.to_str().ok_or("a path")?])?;
        let level = text.lines().find_map(|line| line.split_once("Overall exposure level for ")?.1.split_once(": "));
        let level = level.and_then(|(_, level)| level.split(' ').next()?.parse::<f64>().ok());
        assert!(level.is_some_and(|level| level < 2.0), "{text}");
    }
    Ok(())
}

/// The system calls in a systemd set, without those of excluded subsets.
fn system_calls(set: &str) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut calls = BTreeSet::new();
    for line in analyze(&["syscall-filter", "--no-pager", set])?.lines().skip(1).map(str::trim) {
        if line.starts_with('@') {
            calls.append(&mut system_calls(line)?);
        } else if !line.is_empty() && !line.starts_with('#') {
            calls.insert(line.to_owned());
        }
    }
    Ok(calls)
}

/// The system calls allowed by the filter of a unit.
fn allowed_calls(unit: &str) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let mut allowed = system_calls("@default")?;
    for sets in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        for set in sets.trim_start_matches('~').split(' ') {
            let calls = system_calls(set)?;
            if sets.starts_with('~') {
                allowed.retain(|call| !calls.contains(call));
            } else {
                allowed.extend(calls);
            }
        }
    }
    Ok(allowed)
}

/// The behaviour of a program under `strace -f -y`: its system calls, and the files that it opened for writing.
fn traced(log: &str) -> (BTreeSet<String>, Vec<String>) {
    let calls = log.lines().filter_map(|line| line.split_once(' ').map(|(_, call)| call.trim_start()));
    let calls: Vec<_> = calls.filter_map(|call| call.split_once('(')).filter(|(name, _)| is_name(name)).collect();
    let opened = calls.iter().filter(|(name, _)| *name == "openat").filter_map(|(_, arguments)| {
        let (directory, rest) = arguments.split_once(", \"")?;
        let (path, flags) = rest.split_once("\", ")?;
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| flags.contains(flag));
        let below = directory.split_once('<')?.1.trim_end_matches('>');
        writes.then(|| if path.starts_with('/') { path.to_owned() } else { format!("{below}/{path}") })
    });
    (calls.iter().map(|(name, _)| (*name).to_owned()).collect(), opened.collect())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Runs the words of the unit's command without a shell; the program must do nothing that its unit forbids.
#[test]
fn the_commands_of_the_units_work_with_what_these_allow() -> Outcome {
    if !has_systemd() {
        return Ok(());
    }
    let place = tempfile::tempdir_in("/dev/shm")?;
    let log = place.path().join("strace");
    let mut commands = 0;
    for unit in units()? {
        let unit = fs::read_to_string(&unit)?;
        let allowed = allowed_calls(&unit)?;
        for line in unit.lines() {
            let Some((_, command)) = line.split_once("=/usr/local/bin/tracectl ").filter(|_| line.starts_with("Exec"))
            else {
                continue;
            };
            let traces = place.path().join("traces").to_string_lossy().into_owned();
            let command = command.replace("${STATE_DIRECTORY}/${INVOCATION_ID}", &traces);
            let mut tracectl = Command::new("strace");
            tracectl.args(["-f", "-y", "-qq", "-o"]).args([log.as_path(), Path::new(env!("CARGO_BIN_EXE_tracectl"))]);
            tracectl.args(command.split(' ')).env("TRACEPOINT_RUN_DIR", place.path().join("run"));
            if command.starts_with("record ") {
                tracectl.args(["--duration", "100ms"]);
            }
            let output = tracectl.output()?;
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            let (calls, written) = traced(&fs::read_to_string(&log)?);
            let forbidden: Vec<_> = calls.difference(&allowed).collect();
            assert!(calls.contains("openat") && forbidden.is_empty(), "{line}: {forbidden:?}");
            // `ProtectSystem=strict` permits writing to the run directory and the state directory.
            let outside: Vec<_> = written
                .iter()
                .filter(|path| !["/dev/null", "/proc/"].iter().any(|free| path.starts_with(free)))
                .collect();
            assert!(outside.iter().all(|path| Path::new(path).starts_with(place.path())), "{line}: {outside:?}");
            commands += 1;
        }
    }
    assert_eq!(commands, 3);
    Ok(())
}

//! The units in `examples/systemd`: systemd accepts them, and their commands are accepted by `tracectl`.

use crate::skip::skip;
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

#[test]
fn systemd_accepts_the_units() -> Outcome {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip("systemd-analyze is not installed", "Install the package systemd (`scripts/setup.sh`)");
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let mut copies = Vec::new();
    for unit in units()? {
        // Programs that exist: a unit whose program is missing is refused.
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

/// Without a shell between them, systemd's words are those of `tracectl`.
#[test]
fn the_commands_of_the_units_are_valid() -> Outcome {
    let place = tempfile::tempdir_in("/dev/shm")?;
    let mut commands = 0;
    for unit in units()? {
        for line in fs::read_to_string(&unit)?.lines() {
            let Some((_, command)) = line.split_once("=/usr/local/bin/tracectl ").filter(|_| line.starts_with("Exec"))
            else {
                continue;
            };
            let traces = place.path().join("traces").to_string_lossy().into_owned();
            let command = command.replace("${STATE_DIRECTORY}/${INVOCATION_ID}", &traces);
            let mut tracectl = Command::new(env!("CARGO_BIN_EXE_tracectl"));
            tracectl.args(command.split(' ')).env("TRACEPOINT_RUN_DIR", place.path().join("run"));
            if command.starts_with("record ") {
                tracectl.args(["--duration", "100ms"]);
            }
            let output = tracectl.output()?;
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            commands += 1;
        }
    }
    assert_eq!(commands, 3);
    Ok(())
}

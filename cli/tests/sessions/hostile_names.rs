//! Names chosen by a traced process must not look like another line of the output.

use super::{Outcome, Place, is_traced, program};
use std::fs;
use std::process::Command;

#[test]
fn line_feeds_in_paths_are_escaped() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let original = program("hostile_names::line_feeds_in_paths_are_escaped", 0);
    let copy = place.path("shop\n77 fake  \u{202e}/bin/true");
    fs::create_dir_all(copy.parent().ok_or("no parent")?)?;
    fs::copy(original.get_program(), &copy)?;
    let mut command = Command::new(&copy);
    command.args(original.get_args());
    command.envs(original.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let process = place.start_as(command);

    let listed = place.well(&["list"]);
    assert!(listed.contains("shop\\n77 fake  \\u{202e}/bin/true\n"), "{listed}");
    assert!(!listed.lines().any(|line| line.starts_with("77 ")), "{listed}");
    let (pid, first) = (process.0.id().to_string(), listed.lines().next().ok_or("empty")?);
    assert!(first.starts_with(&pid), "{listed}");
    Ok(())
}

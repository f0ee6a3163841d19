//! The work of verbs that look at all sessions is linear in their number, not quadratic.

use super::{Outcome, Place, is_traced};
use std::fs;
use std::process::{Command, Stdio};

/// The number of system calls of `tracectl` with these arguments, including its threads.
fn calls(place: &Place, arguments: &[&str]) -> Result<u64, Box<dyn std::error::Error>> {
    let log = place.path("strace");
    let tracectl = place.command(arguments);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-S", "calls", "-U", "calls,name", "-o"]).arg(&log);
    strace.arg(tracectl.get_program()).args(tracectl.get_args()).stdout(Stdio::null());
    strace.envs(tracectl.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = strace.output().expect("strace is installed (see scripts/setup.sh)");
    assert!(output.status.success(), "{output:?}");
    let counts = fs::read_to_string(log)?;
    let total = counts.lines().find(|line| line.ends_with(" total")).ok_or("no sum")?;
    Ok(total.split_whitespace().next().ok_or("no number")?.parse()?)
}

#[test]
fn the_work_of_status_grows_with_the_number_of_sessions() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("many_sessions::the_work_of_status_grows_with_the_number_of_sessions");
    let mut made = 0;
    let mut with = |sessions: usize, arguments: &[&str]| {
        for number in made..sessions {
            place.well(&["create", &format!("s{number}"), "-e", "shop:paid"]);
        }
        made = sessions;
        calls(&place, arguments)
    };
    let status = ["status", "--json"];
    let [few, more, many] = [with(10, &status)?, with(30, &status)?, with(70, &status)?];
    // Two steps of 20 and 40 sessions: the second costs twice the first if each session costs the same.
    let (first, second) = (more - few, many - more);
    assert!(second < first * 5 / 2, "{few} system calls with 10 sessions, {more} with 30, {many} with 70");
    Ok(())
}

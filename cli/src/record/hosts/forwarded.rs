//! The command-line arguments that are forwarded to the hosts.

use crate::Arguments;
use crate::failure::Failure;
use clap::CommandFactory;
use clap::parser::ValueSource;
use std::env;
use std::ffi::{OsStr, OsString};

/// Arguments of the local side: hosts, collector, output and report.
const OWN: [&str; 9] = ["on", "rsh", "collect_at", "remote_tracectl", "output", "json", "max_size", "replace", "dated"];

/// The forwarded arguments as given by the user, each with its value in one word, and the command to record.
pub(super) fn arguments() -> Result<Vec<String>, Failure> {
    from(env::args_os())
}

fn from(given: impl IntoIterator<Item: Into<OsString> + Clone>) -> Result<Vec<String>, Failure> {
    let mut tracectl = Arguments::command();
    tracectl.build();
    let matches = tracectl.clone().get_matches_from(given);
    let record = matches.subcommand().and_then(|(name, matches)| Some((tracectl.find_subcommand(name)?, matches)));
    let mut forwarded = vec!["record".to_owned()];
    let mut command = Vec::new();
    for argument in record.iter().flat_map(|(verb, _)| verb.get_arguments()) {
        let id = argument.get_id().as_str();
        let values = record
            .as_ref()
            .filter(|(_, matches)| !OWN.contains(&id) && matches.value_source(id) == Some(ValueSource::CommandLine));
        let Some((_, matches)) = values else { continue };
        let Some(long) = argument.get_long() else {
            // The command is the only argument without a name.
            for word in matches.get_raw(id).into_iter().flatten() {
                command.push(as_text(word)?);
            }
            continue;
        };
        if !argument.get_action().takes_values() {
            forwarded.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            forwarded.push(format!("--{long}={}", as_text(value)?));
        }
    }
    if !command.is_empty() {
        forwarded.push("--".to_owned());
        forwarded.append(&mut command);
    }
    Ok(forwarded)
}

fn as_text(word: &OsStr) -> Result<String, Failure> {
    let text = word.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Usage(format!("{} is not UTF-8, which hosts cannot be sent", word.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_all_arguments_but_those_for_this_side() -> Result<(), Failure> {
        let given = [
            "tracectl",
            "record",
            "--on",
            "a,b",
            "-enet:*",
            "-e",
            "!net:idle",
            "--filter",
            "-1 < n && s == \"it's\"",
            "--rsh=ssh -v",
            "-o",
            "/tmp/x",
            "--max-size",
            "3G",
            "--json",
            "--fail-on-loss",
            "--context",
            "cpu,thread_name",
            "--sync-interval",
            "100ms",
            "--",
            "./server",
            "-o",
            "two words",
        ];
        let expected = [
            "record",
            "--event=net:*",
            "--event=!net:idle",
            "--filter=-1 < n && s == \"it's\"",
            "--sync-interval=100ms",
            "--context=cpu",
            "--context=thread_name",
            "--fail-on-loss",
            "--",
            "./server",
            "-o",
            "two words",
        ];
        let mut sorted = [from(given)?, expected.map(str::to_owned).into()];
        for words in &mut sorted {
            let end = words.iter().position(|word| word == "--").unwrap_or_default();
            words[1..end].sort();
        }
        assert_eq!(sorted[0], sorted[1]);
        Ok(())
    }
}

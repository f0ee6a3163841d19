//! The texts of `--help` that depend on the width of the terminal and on the verb.
//!
//! After its options, the help of a verb has examples and the exit codes of this verb.
//! `clap` would wrap these lines without regard to their columns, so they are wrapped here.

use crate::Arguments;
use crate::candidates::with_candidates;
use crate::failure::{Outcome, VerbResult};
use crate::output;
use crate::verb_groups::grouped;
use clap::{Arg, Command, CommandFactory};
use std::io::Write;

/// Width of the help if it is not written to a terminal, and its maximum width otherwise; the same as `clap`'s.
const WIDTH: usize = 100;

/// Verbs that control no processes and therefore have no `--user`.
const WITHOUT_USER: [&str; 13] = [
    "install-core-handler",
    "view",
    "verify",
    "convert",
    "export",
    "query",
    "dt",
    "completions",
    "man",
    "serve",
    "read",
    "collect",
    "help",
];

/// The command line, with its help for the terminal.
pub(crate) fn command() -> Command {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    command_for(terminal.unwrap_or(WIDTH).min(WIDTH))
}

/// Ends the program in place of a verb: writes the help or the version to the standard output, or the error in the command line to the standard
/// error.
pub(crate) fn show(error: &clap::Error) -> VerbResult {
    if error.use_stderr() {
        // If the standard error cannot be written, only the exit code reports the error.
        drop(error.print());
        return Ok(Outcome::Usage);
    }
    let mut out = output::styled();
    write!(out, "{}", error.render().ansi())?;
    out.flush()?;
    Ok(Outcome::Success)
}

/// The command line as manual pages describe it: verbs without global options.
pub(crate) fn manual() -> Command {
    let without_help = |command: Command| command.disable_help_subcommand(true);
    adapted(without_help(Arguments::command()).mut_subcommands(without_help), WIDTH)
}

fn command_for(width: usize) -> Command {
    grouped(adapted(Arguments::command(), width))
}

fn adapted(mut command: Command, width: usize) -> Command {
    // Propagates the global options to the verbs.
    command.build();
    let command = command.mut_subcommands(|command| {
        let verb = command.get_name().to_owned();
        let takes_user = !WITHOUT_USER.contains(&verb.as_str());
        let adapt = |arg: Arg| {
            let arg = with_candidates(arg, &verb);
            if arg.get_id() == "user" { arg.hide(!takes_user) } else { arg }
        };
        let codes = codes(&verb);
        let below = |command: Command| finish(command.mut_args(adapt), width, &codes);
        below(command).mut_subcommands(below)
    });
    finish(command, width, &Outcome::all().collect::<Vec<_>>())
}

fn codes(verb: &str) -> Vec<Outcome> {
    let further: &[Outcome] = match verb {
        "create"
        | "save"
        | "listen"
        | "notifications"
        | "trigger"
        | "untrigger"
        | "install-core-handler"
        | "completions"
        | "man" => &[],
        "record" => &[Outcome::Incomplete, Outcome::Lossy, Outcome::NotRecorded, Outcome::Killed],
        "read" => &[Outcome::Incomplete, Outcome::Lossy, Outcome::NoServer],
        "view" => &[Outcome::Incomplete, Outcome::NoServer],
        _ => &[Outcome::Incomplete],
    };
    let mut codes = [&[Outcome::Success, Outcome::Usage, Outcome::Failed], further].concat();
    codes.sort();
    codes
}

/// Writes the exit codes into the help of a command, and wraps it.
fn finish(command: Command, width: usize, codes: &[Outcome]) -> Command {
    let help = command.get_after_help().map(|help| {
        let lines = codes.iter().map(|outcome| format!("  {}  {}", outcome.code(), outcome.text()));
        let codes = ["Exit codes:".to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n");
        format!("{help}\n\n{codes}").lines().map(|line| wrapped(line, width)).collect::<Vec<_>>().join("\n")
    });
    match help {
        Some(help) => command.after_help(help),
        None => command,
    }
}

/// Wraps a line; continuation lines are indented by three more spaces. A comment (after three spaces) is not split.
fn wrapped(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start().len();
    let comment = line[indent..].split_once("   ").filter(|_| line.chars().count() > width);
    if let Some((example, comment)) = comment {
        let comment = format!("{:indent$}   {}", "", comment.trim_start());
        return format!("{}\n{}", wrapped(&line[..indent + example.len()], width), wrapped(&comment, width));
    }
    let (mut wrapped, mut column, mut is_new) = (String::new(), 0, false);
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column + length > width && column > indent {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent + 3));
            (column, is_new) = (indent + 3, true);
        }
        // Additional spaces are dropped at a line break.
        if !is_new || length > 0 {
            wrapped.push_str(word);
            (column, is_new) = (column + word.chars().count(), false);
        }
    }
    wrapped.truncate(wrapped.trim_end().len());
    wrapped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects all commands with their full paths.
    fn all(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set()) {
            let path = format!("{path} {}", below.get_name());
            found.push((path.clone(), below.clone()));
            all(below, &path, found);
        }
    }

    #[test]
    fn help_is_wrapped_to_the_terminal_and_has_what_applies() {
        for width in [60, 80, 100] {
            let mut found = Vec::new();
            all(&command_for(width), "tracectl", &mut found);
            assert!(found.len() > 30);
            for (path, mut command) in found {
                let help = command.clone().term_width(width).render_long_help().to_string();
                for line in help.lines().filter(|line| line.chars().count() > width) {
                    let indent = line.len() - line.trim_start().len();
                    // The usage, and words that are longer than a line, cannot be wrapped.
                    let is_one_word = !line[indent..].contains(' ');
                    assert!(is_one_word || line.starts_with("Usage: "), "{path} at {width}: {line}");
                }
                let verb = path.split(' ').nth(1).unwrap();
                let has_user = help.contains("--user <USER>");
                assert_eq!(has_user, !WITHOUT_USER.contains(&verb), "{path}");
                assert!(help.contains("\n\nExit codes:\n  0  success\n"), "{path}");
                assert_eq!(help.contains("\n  7  `record`"), verb == "record", "{path}");
                command.build();
            }
        }
    }

    /// Verbs whose output is made for a program in any case (a shell, `man`, the kernel), that draw on the terminal, or that have
    /// subcommands.
    const WITHOUT_JSON: [&str; 7] = [
        "tracectl completions",
        "tracectl man",
        "tracectl notify",
        "tracectl dt",
        "tracectl top",
        "tracectl query",
        "tracectl usdt",
    ];

    #[test]
    fn the_options_of_long_verbs_have_headings() {
        let mut found = Vec::new();
        all(&command_for(80), "tracectl", &mut found);
        for (path, command) in found {
            let plain = command
                .get_arguments()
                .filter(|arg| !arg.is_positional() && !arg.is_hide_set() && arg.get_help_heading().is_none());
            let plain: Vec<_> = plain.map(|arg| arg.get_id().as_str()).collect();
            assert!(plain.len() <= 12, "{path}: {plain:?}");
            // The last verb of a group ends the group's heading.
            if ["create", "enable", "disable", "record", "export", "report"].iter().any(|verb| path.ends_with(verb)) {
                assert!(plain.contains(&"json"), "{path}: {plain:?}");
            }
        }
    }

    #[test]
    fn every_verb_writes_json_on_request() {
        let mut found = Vec::new();
        all(&command_for(80), "tracectl", &mut found);
        for (path, command) in found {
            let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
            assert_eq!(has_json, !WITHOUT_JSON.contains(&path.as_str()), "{path}");
        }
    }

    /// The words of the first command on a line, split as by a shell. A comment follows three spaces.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote, mut blanks) = (vec![String::new()], None, 0);
        for c in line.trim_start().chars() {
            blanks = if c == ' ' { blanks + 1 } else { 0 };
            match c {
                _ if quote == Some(c) => quote = None,
                _ if quote.is_some() => words.last_mut().unwrap().push(c),
                '\'' | '"' => quote = Some(c),
                '|' | '&' | '>' | '<' | ';' => break,
                ' ' if blanks == 3 => break,
                ' ' => words.push(String::new()),
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn examples_are_commands() {
        let mut found = vec![("tracectl".to_owned(), Arguments::command())];
        all(&Arguments::command(), "tracectl", &mut found);
        let (tracectl, mut examples) = (command_for(100), 0);
        for (path, command) in found {
            for line in command.get_after_help().unwrap().to_string().lines() {
                let commands = line.split("&&").map(str::trim_start).filter(|_| line.starts_with("  "));
                for command in commands.filter(|command| command.starts_with("tracectl ")) {
                    let words = words(command);
                    let parsed = tracectl.clone().try_get_matches_from(&words);
                    assert!(parsed.is_ok(), "{path}: {line}: {}", parsed.unwrap_err());
                    examples += 1;
                }
            }
        }
        assert!(examples > 140, "{examples}");
    }

    #[test]
    fn lines_are_wrapped_with_an_indent() {
        assert_eq!(wrapped("  7  one two three", 12), "  7  one two\n     three");
        assert_eq!(wrapped("  tracectl list      list processes", 22), "  tracectl list\n     list processes");
        assert_eq!(wrapped("averylongword", 5), "averylongword");
        assert_eq!(wrapped("", 5), "");
    }
}

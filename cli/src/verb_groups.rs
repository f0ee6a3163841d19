//! The list of verbs in `tracectl --help`, by groups.

use clap::Command;
use std::fmt::Write;

/// Each verb that is not hidden is in one group.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Record", &["list", "record"]),
    (
        "Sessions",
        &[
            "create",
            "enable",
            "disable",
            "start",
            "stop",
            "snapshot",
            "rotate",
            "status",
            "save",
            "load",
            "destroy",
            "bandwidth",
            "clean",
        ],
    ),
    ("Triggers", &["trigger", "triggers", "untrigger", "listen", "notifications", "notify", "install-core-handler"]),
    ("Traces", &["view", "why", "verify", "recover", "report"]),
    ("Statistics", &["stat", "hist", "top"]),
    ("Network", &["collect", "serve", "read"]),
    ("Files", &["convert", "export", "query", "dt", "usdt"]),
    ("This program", &["completions", "man", "help"]),
];

/// Lists the verbs by groups, in place of the list of `clap`, which has no groups.
pub(crate) fn grouped(command: Command) -> Command {
    let command = command.mut_subcommand("help", |help| help.about("Shows the help of this program or of a verb"));
    let about = |verb: &str| command.find_subcommand(verb).and_then(Command::get_about).map(ToString::to_string);
    let header = command.get_styles().get_header();
    let mut list = String::new();
    for (heading, verbs) in GROUPS {
        let _ = writeln!(list, "{header}{heading}:{header:#}");
        for verb in verbs {
            let _ = writeln!(list, "  {verb:20}  {}", about(verb).unwrap_or_default());
        }
        list.push('\n');
    }
    let options = format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{options}");
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[test]
    fn each_verb_is_in_one_group_and_on_one_line() {
        let mut command = help::command();
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let mut verbs: Vec<_> = verbs.map(str::to_owned).collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
        let text = command.render_long_help().to_string();
        for verb in listed {
            let line = text.lines().find(|line| line.starts_with(&format!("  {verb} "))).expect("it is listed");
            assert!(line.len() > 30 && line.len() <= 80, "{line}");
        }
    }
}

//! The blocks of commands of a page, and the directives in the comments before them.
//!
//! | comment before a block | means |
//! |---|---|
//! | `<!-- TOOL: LINES -->` | a block of `from_other_tools` |
//! | `<!-- not run: REASON -->` | the block is not run |
//! | `` <!-- not run `COMMAND`: REASON --> `` | commands with this prefix are not run |
//! | `<!-- before: COMMAND -->` | runs this first, which a reader does elsewhere |
//! | `` <!-- background: `COMMAND` --> `` | commands with this prefix keep running, as in another terminal |
//! | `` <!-- status N: `COMMAND` --> `` | commands with this prefix end with this exit status |

use std::path::{Path, PathBuf};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// A block of code.
pub(crate) struct Block {
    /// Its first line, from 1.
    pub(crate) line: usize,
    /// The language after the fence.
    pub(crate) language: String,
    /// The comments before it.
    directives: Vec<String>,
    pub(crate) text: String,
}

/// A command and its position.
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// True if it keeps running during the following commands.
    pub(crate) in_background: bool,
    /// Its exit status.
    pub(crate) status: u8,
}

impl Command {
    fn new(line: usize, text: &str) -> Self {
        Self { line, text: text.to_owned(), in_background: text.ends_with('&'), status: 0 }
    }
}

/// The prefix of commands, between the first two backticks.
fn prefix(directive: &str) -> &str {
    directive.split('`').nth(1).expect("a command in backticks")
}

impl Block {
    fn directives<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.directives.iter().filter_map(move |directive| directive.strip_prefix(kind))
    }

    /// True if it contains commands.
    pub(crate) fn has_commands(&self) -> bool {
        matches!(self.language.as_str(), "console" | "sh")
    }

    /// True for code that the doc tests of the book leave out.
    pub(crate) fn is_left_out(&self) -> bool {
        self.language == "rust,ignore"
    }

    /// True if [`from_other_tools`](super::from_other_tools) runs it.
    pub(crate) fn is_of_other_tools(&self) -> bool {
        let is_tool =
            |directive: &String| directive.split_once(": ").is_some_and(|(_, lines)| lines.parse::<usize>().is_ok());
        self.directives.iter().any(is_tool)
    }

    /// The reason why it is not run, if any.
    pub(crate) fn not_run(&self) -> Option<&str> {
        self.directives("not run: ").next()
    }

    /// The commands to run, including those that a reader has run elsewhere. In a `console` block they follow `$`.
    pub(crate) fn commands(&self) -> Vec<Command> {
        let before = self.directives("before: ").map(|text| Command::new(self.line, text));
        let lines = self.text.lines().zip(self.line + 1..);
        let inside = lines.filter_map(|(text, line)| {
            let text = if self.language == "console" { text.strip_prefix("$ ")? } else { text };
            Some(Command::new(line, text.split("   # ").next().unwrap_or_default().trim_end()))
        });
        let mut commands: Vec<Command> = before.chain(inside).collect();
        for directive in self.directives("not run ") {
            self.commands_that_begin(directive, &mut commands);
            commands.retain(|command| !command.text.starts_with(prefix(directive)));
        }
        for directive in self.directives("background: ") {
            for command in self.commands_that_begin(directive, &mut commands) {
                command.in_background = true;
            }
        }
        for directive in self.directives("status ") {
            let status = directive.split(':').next().and_then(|status| status.parse().ok()).expect("an exit status");
            for command in self.commands_that_begin(directive, &mut commands) {
                command.status = status;
            }
        }
        commands
    }

    /// The commands that a directive applies to.
    fn commands_that_begin<'a>(&self, directive: &str, commands: &'a mut [Command]) -> Vec<&'a mut Command> {
        let found: Vec<_> = commands.iter_mut().filter(|command| command.text.starts_with(prefix(directive))).collect();
        assert!(!found.is_empty(), "line {}: no command begins so: {directive}", self.line);
        found
    }
}

/// The blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let mut blocks: Vec<Block> = Vec::new();
    let mut directives = Vec::new();
    let mut open = false;
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim_start();
        if let Some(language) = trimmed.strip_prefix("```") {
            open = !open;
            if open {
                let (language, directives) = (language.to_owned(), std::mem::take(&mut directives));
                blocks.push(Block { line: number, language, directives, text: String::new() });
            }
        } else if open {
            let block = blocks.last_mut().expect("a block that is open");
            block.text.push_str(line);
            block.text.push('\n');
        } else if let Some(comment) = trimmed.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            directives.push(comment.to_owned());
        } else if !trimmed.is_empty() {
            directives.clear();
        }
    }
    assert!(!open, "{page}: a block is not closed");
    blocks
}

/// The README and all pages of the book.
pub(crate) fn all() -> Vec<String> {
    let entries =
        std::fs::read_dir(root().join("docs")).expect("docs/").map(|entry| entry.expect("an entry").file_name());
    let names = entries.map(|name| name.into_string().expect("a name in UTF-8"));
    let mut pages: Vec<_> = names
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

//! The pattern of a rule for names: `sched:*`, `net:recv_?`, `io:[a-m]*`, and `!…` to exclude events.

use glob::Pattern;

/// A pattern for `provider:name`, and whether it includes or excludes events.
#[derive(Debug)]
pub(crate) struct NameRule {
    text: String,
    pattern: Pattern,
    excludes: bool,
}

impl NameRule {
    /// Parses a pattern; the error says what was expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (excludes, glob) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        if glob.is_empty() {
            return Err("it is empty; expected a name like `provider:name`, or a pattern like `provider:*`".to_owned());
        }
        if !glob.contains([':', '*', '?', '[']) {
            return Err(format!(
                "it names no provider; expected `provider:name`: `*:{glob}` for one event of any provider, `{glob}:*` for a \
                 provider"
            ));
        }
        // `**` means the same as `*` here; the glob library would take it for a pattern of directories.
        let mut plain = glob.to_owned();
        while plain.contains("**") {
            plain = plain.replace("**", "*");
        }
        let pattern = Pattern::new(&plain).map_err(|error| {
            let at = error.pos + 1;
            format!("{} at character {at}; expected `*`, `?`, `[abc]`, `[a-z]` or `[!a]` in a name", error.msg)
        })?;
        Ok(Self { text: text.to_owned(), pattern, excludes })
    }

    /// The rule as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it excludes events.
    pub(crate) const fn excludes(&self) -> bool {
        self.excludes
    }

    /// Whether the pattern matches `name`, a `provider:name`.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(rule: &str, name: &str) -> bool {
        NameRule::parse(rule).is_ok_and(|rule| rule.matches(name))
    }

    #[test]
    fn patterns_match_whole_names() {
        for (rule, name, expected) in [
            ("sched:*", "sched:switch", true),
            ("sched:*", "xsched:switch", false),
            ("*", "a:b", true),
            ("a:**", "a:b/c", true),
            ("*:recv_?", "net:recv_1", true),
            ("*:recv_?", "net:recv_12", false),
            ("io:[a-m]*", "io:close", true),
            ("io:[!a-m]*", "io:close", false),
            ("s*", "sched:switch", true),
            ("!sched:*", "sched:switch", true),
        ] {
            assert_eq!(matches(rule, name), expected, "{rule} on {name}");
        }
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (rule, part) in [("", "empty"), ("!", "empty"), ("sched", "`sched:*`"), ("a:[", "at character 3")] {
            let error = NameRule::parse(rule).expect_err(rule);
            assert!(error.contains(part), "{rule}: {error}");
        }
    }
}

//! `core_pattern`: the text that configures the kernel to start a helper for a process that dumps core (`man 5 core`).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

/// Maximum length of a pattern; the kernel cuts off the rest without an error.
const MAX_LEN: usize = 127;
/// The arguments of `tracectl notify --core`, in order. The first [`REQUIRED`] are always present.
pub(super) const SPECIFIERS: [&str; 13] =
    ["%P", "%u", "%g", "%e", "%h", "%s", "%t", "%p", "%i", "%I", "%c", "%d", "%E"];
/// Number of [`SPECIFIERS`] that a helper needs.
pub(super) const REQUIRED: usize = 6;
/// The command of `tracectl` that is the helper.
const VERB: &str = " notify ";

/// A pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The kernel splits a pattern at spaces, and replaces `%`.
    #[error("{0} cannot stand in core_pattern, because of a space or `%`: install the program in another directory")]
    Path(String),
    /// The kernel would truncate it.
    #[error(
        "the pattern would have {0} bytes, and the kernel keeps {MAX_LEN}: install the program under a shorter path"
    )]
    TooLong(usize),
    /// The installed handler requires a value that this helper does not know.
    #[error("the present handler uses `{0}`, which cannot be passed on to it")]
    Specifier(String),
}

/// Returns the pattern by which the kernel starts `program` with its configuration in `config`, which the pattern contains if it is not at
/// the usual place.
pub(super) fn for_helper(program: &Path, config: Option<&Path>) -> Result<String, PatternError> {
    let plain = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        let is_plain = path.to_str().is_some() && !text.contains(|c: char| c == '%' || c.is_whitespace());
        if is_plain { Ok(text) } else { Err(PatternError::Path(text)) }
    };
    let mut pattern = format!("|{}{VERB}", plain(program)?);
    if let Some(config) = config {
        let _ = write!(pattern, "--config {} ", plain(config)?);
    }
    let _ = write!(pattern, "--core {}", SPECIFIERS.join(" "));
    if pattern.len() > MAX_LEN { Err(PatternError::TooLong(pattern.len())) } else { Ok(pattern) }
}

/// Returns whether a pattern starts this helper.
pub(super) fn is_ours(pattern: &str) -> bool {
    pattern.starts_with('|') && pattern.contains(VERB) && pattern.contains(" --core %P ")
}

/// Returns whether a pattern starts a program.
pub(super) fn is_handler(pattern: &str) -> bool {
    pattern.starts_with('|')
}

/// Returns the command line of the handler in `pattern`, for the values of [`SPECIFIERS`]; like the kernel, splits first, and then
/// replaces. Missing values are empty.
pub(super) fn expand(pattern: &str, values: &[OsString]) -> Result<Vec<OsString>, PatternError> {
    let words = pattern.trim_start_matches('|').split_whitespace();
    words.map(|word| expand_word(word, values)).collect()
}

fn expand_word(word: &str, values: &[OsString]) -> Result<OsString, PatternError> {
    let (mut expanded, mut rest) = (OsString::new(), word);
    while let Some((text, after)) = rest.split_once('%') {
        expanded.push(text);
        // The kernel drops a `%` at the end.
        let Some(letter) = after.chars().next() else { return Ok(expanded) };
        if letter == '%' {
            expanded.push("%");
        } else {
            let specifier = format!("%{letter}");
            let Some(index) = SPECIFIERS.iter().position(|known| *known == specifier) else {
                return Err(PatternError::Specifier(specifier));
            };
            expanded.push(values.get(index).unwrap_or(&OsString::new()));
        }
        rest = &after[letter.len_utf8()..];
    }
    expanded.push(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<OsString> {
        (0..SPECIFIERS.len()).map(|index| format!("<{index}>").into()).collect()
    }

    #[test]
    fn the_kernel_gets_a_pattern_that_it_does_not_cut_off() {
        let pattern = for_helper(Path::new("/usr/local/bin/tracectl"), None).expect("it is short");
        assert!(pattern.starts_with("|/usr/local/bin/tracectl notify --core %P %u %g %e %h %s "), "{pattern}");
        assert!(is_ours(&pattern) && is_handler(&pattern));
        let own = for_helper(Path::new("/usr/bin/tracectl"), Some(Path::new("/etc/core.toml"))).expect("it is short");
        assert!(own.contains(" --config /etc/core.toml --core %P "), "{own}");
        assert!(is_ours(&own));
        let long = format!("/{}", "x".repeat(100));
        assert!(matches!(for_helper(Path::new(&long), None), Err(PatternError::TooLong(128..))));
        for bad in ["/opt/my tools/tracectl", "/opt/100%/tracectl"] {
            assert!(matches!(for_helper(Path::new(bad), None), Err(PatternError::Path { .. })), "{bad}");
        }
        assert!(!is_ours("|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h") && !is_ours("core"));
    }

    #[test]
    fn another_handler_is_expanded_as_the_kernel_does() {
        let expanded = expand("|/lib/handler %P  -x%u:%s %% a%", &values()).expect("all are known");
        assert_eq!(expanded, ["/lib/handler", "<0>", "-x<1>:<5>", "%", "a"]);
        // Values are not split and not expanded again.
        let mut hostile = values();
        hostile[3] = "a %P b".into();
        assert_eq!(expand("|h %e", &hostile).expect("known"), ["h", "a %P b"]);
        assert_eq!(expand("|h %d.", &[]).expect("known"), ["h", "."]);
        assert_eq!(expand("|h %Z", &values()), Err(PatternError::Specifier("%Z".to_owned())));
    }
}

//! Turns names from the network into path components. No name that a sender chooses leads out of the output directory.

use std::path::PathBuf;

/// Maximum length of a file name on Linux file systems, in bytes.
const LONGEST: usize = 255;
/// Maximum number of components in a path.
const DEEPEST: usize = 16;

/// Reason why a name is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadName {
    #[error("{what} is empty")]
    Empty { what: &'static str },
    #[error("{what} `{name}` begins with `.`, or contains `/` or control characters")]
    Unsafe { what: &'static str, name: String },
    #[error("{what} has {length} bytes, and at most {most} are possible")]
    Long { what: &'static str, length: usize, most: usize },
    #[error("the path has more than {DEEPEST} components")]
    Deep,
}

/// Checks that `name` is a single path component that leaves space for `more` bytes.
pub(crate) fn component<'a>(what: &'static str, name: &'a str, more: usize) -> Result<&'a str, BadName> {
    let most = LONGEST - more;
    if name.is_empty() {
        Err(BadName::Empty { what })
    } else if name.starts_with('.') || name.contains(|c: char| c == '/' || c.is_control()) {
        // The name may contain any bytes, and is quoted in a message.
        Err(BadName::Unsafe { what, name: name.chars().take(64).flat_map(char::escape_default).collect() })
    } else if name.len() > most {
        Err(BadName::Long { what, length: name.len(), most })
    } else {
        Ok(name)
    }
}

/// Replaces the characters that a path component cannot have, and shortens the result to leave space for `more` bytes.
pub(crate) fn sanitised(name: &str, more: usize) -> String {
    let replaced: String = name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    let mut safe = replaced.strip_prefix('.').map_or_else(|| replaced.clone(), |rest| format!("_{rest}"));
    while safe.len() > LONGEST - more {
        safe.pop();
    }
    if safe.is_empty() { "_".to_owned() } else { safe }
}

/// Parses a relative path. Empty components, such as the one before a leading `/`, are ignored.
pub(crate) fn path(what: &'static str, text: &str) -> Result<PathBuf, BadName> {
    let mut path = PathBuf::new();
    for (depth, name) in text.split('/').filter(|name| !name.is_empty()).enumerate() {
        if depth == DEEPEST {
            return Err(BadName::Deep);
        }
        path.push(component(what, name, 0)?);
    }
    if path.as_os_str().is_empty() { Err(BadName::Empty { what }) } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Component, Path};

    #[test]
    fn names_stay_below_their_directory() {
        for wrong in ["", ".", "..", ".hidden", "a/b", "/", "a\0b", "a\nb", "\u{1b}[2J", &"x".repeat(256)] {
            assert!(component("the name", wrong, 0).is_err(), "{wrong}");
        }
        assert_eq!(component("the name", "shop-7 ü", 16), Ok("shop-7 ü"));
        assert!(component("the name", &"x".repeat(240), 16).is_err());
        assert_eq!(
            component("the name", &"x".repeat(300), 16).map_err(|error| error.to_string()),
            Err("the name has 300 bytes, and at most 239 are possible".into())
        );
    }

    #[test]
    fn any_name_becomes_a_component() {
        for (name, expected) in [("shop", "shop"), ("..", "_."), (".x", "_x"), ("a/b\n", "a_b_"), ("", "_"), ("/", "_")]
        {
            assert_eq!(sanitised(name, 0), expected);
        }
        let long = sanitised(&"ü".repeat(200), 16);
        assert!(long.len() <= 239 && component("the name", &long, 16).is_ok());
    }

    #[test]
    fn paths_stay_below_their_directory() {
        for wrong in ["", "/", "..", "a/../b", "../x", "a/./b", "a/.b", &"a/".repeat(17), "a/\r"] {
            assert!(path("the path", wrong).is_err(), "{wrong}");
        }
        for (text, expected) in
            [("/ust//uid/", "ust/uid"), ("a", "a"), (&"a/".repeat(16), "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a")]
        {
            let path = path("the path", text).expect("a path");
            assert_eq!(path, Path::new(expected));
            assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
        }
    }
}

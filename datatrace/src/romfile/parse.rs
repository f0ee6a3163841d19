//! Parses the text of a romfile into entries.

use super::{RomEntry, RomError};

/// The second word of lines that are read.
const FACILITY: &str = "trace";
const OPTIONS: &str = "`name=NAME`, `logsize=BYTES` or `filesize=BUFFERS`";

/// The lines of the facility `trace` in order, each as an entry or an error.
pub fn parse(text: &str) -> impl Iterator<Item = Result<RomEntry, RomError>> + '_ {
    text.lines().enumerate().filter_map(|(index, line)| entry(line, index + 1))
}

/// A word, and the column of its beginning.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    column: usize,
}

/// The words of a line up to a comment. A `;` is a word, and the text after it that is not a comment is another one.
fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut rest = line;
    let mut column = 1;
    loop {
        let blank = rest.len() - rest.trim_start().len();
        column += rest[..blank].chars().count();
        rest = &rest[blank..];
        if rest.is_empty() || rest.starts_with('#') {
            return words;
        }
        let length = match rest.find(|c: char| c == ';' || c.is_whitespace()) {
            Some(0) => 1,
            Some(length) => length,
            None => rest.len(),
        };
        let (text, others) = rest.split_at(length);
        words.push(Word { text, column });
        column += text.chars().count();
        rest = others;
    }
}

fn entry(line: &str, number: usize) -> Option<Result<RomEntry, RomError>> {
    let words = words(line);
    let [protocol, facility, rest @ ..] = words.as_slice() else {
        return None;
    };
    if facility.text != FACILITY || protocol.text == ";" {
        return None;
    }
    let end = words.last().map_or(1, |word| word.column + word.text.chars().count());
    let protocol = protocol.text.to_owned();
    let entry = options(rest, end).map_or_else(
        |(column, reason)| Err(RomError { protocol: protocol.clone(), line: number, column, reason }),
        |(name, logsize, filesize)| Ok(RomEntry { protocol: protocol.clone(), name, logsize, filesize, line: number }),
    );
    Some(entry)
}

type Options = (Option<String>, u32, u32);

/// The options after `PROTOCOL trace`; or the column and the reason of an error.
fn options(words: &[Word], end: usize) -> Result<Options, (usize, String)> {
    let (mut name, mut logsize, mut filesize) = (None, None, None);
    let mut words = words.iter();
    let semicolon = loop {
        let Some(word) = words.next() else {
            return Err((end, format!("expected {OPTIONS}, or `;` at the end of the entry")));
        };
        if word.text == ";" {
            break word;
        }
        let Some((key, value)) = word.text.split_once('=') else {
            return Err((word.column, format!("found `{}`; expected {OPTIONS}, or `;`", word.text)));
        };
        let column = word.column + key.chars().count() + 1;
        let twice = match key {
            "name" if value.is_empty() => {
                return Err((column, "expected a name; without `name=` the object has none".into()));
            }
            "name" => name.replace(value.to_owned()).is_some(),
            "logsize" => logsize.replace(size(value, "bytes").map_err(|reason| (column, reason))?).is_some(),
            "filesize" => filesize.replace(size(value, "buffers").map_err(|reason| (column, reason))?).is_some(),
            _ => return Err((word.column, format!("there is no option `{key}`; expected {OPTIONS}"))),
        };
        if twice {
            return Err((word.column, format!("`{key}=` is given twice")));
        }
    };
    if let Some(word) = words.next() {
        return Err((word.column, format!("found `{}` behind the `;`; expected the end of the line", word.text)));
    }
    let missing = |key: &str, what| (semicolon.column, format!("expected `{key}={what}` before the `;`"));
    let logsize = logsize.ok_or_else(|| missing("logsize", "BYTES"))?;
    let filesize = filesize.ok_or_else(|| missing("filesize", "BUFFERS"))?;
    Ok((name, logsize, filesize))
}

fn size(value: &str, of: &str) -> Result<u32, String> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(0) => Err(format!("found 0; expected at least 1 of {of}")),
        Ok(size) if digits => Ok(size),
        Err(_) if digits => Err(format!("found {value}; expected a number of {of} below 2^32")),
        _ => Err(format!("found `{value}`; expected a number of {of} in decimal digits")),
    }
}

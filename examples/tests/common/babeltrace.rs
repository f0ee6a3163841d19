//! Reads a trace with babeltrace2.

use super::Plain;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The events of the trace in `directory`. babeltrace2 must read it without any message.
pub(crate) fn events(directory: &Path) -> Vec<Plain> {
    let output = Command::new("babeltrace2").arg(directory).env("LC_ALL", "C").output();
    let output = output.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaints.is_empty(), "{}: {complaints}", output.status);
    output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(event).collect()
}

/// A line: `[time] (+distance) host:program:(pid) provider:name: { context }, { fields }`.
fn event(line: &[u8]) -> Plain {
    let colon = line.windows(4).position(|window| window == b": { ").expect("a name, then fields");
    let name = line[..colon].rsplit(|byte| *byte == b' ').next().unwrap();
    let mut text = Text { rest: &line[colon + 2..] };
    let context = text.members();
    assert!(context.contains_key("tid"));
    text.expect(b", ");
    let mut fields = text.members();
    assert!(text.rest.is_empty(), "after the fields: {}", text.rest.escape_ascii());
    let mut field = |name: &str| fields.remove(name).unwrap_or_else(|| panic!("no field {name}"));
    let event = match name {
        b"treehash:dir_entered" => Plain::DirEntered { path: field("path").text(), depth: field("depth").number() },
        b"treehash:file_opened" => Plain::FileOpened { path: field("path").text(), size: field("size").number() },
        b"treehash:chunk_read" => {
            Plain::ChunkRead { fd: field("fd").number(), offset: field("offset").number(), len: field("len").number() }
        }
        b"treehash:file_hashed" => Plain::FileHashed {
            path: field("path").text(),
            size: field("size").number(),
            digest: field("digest").bytes(),
        },
        b"treehash:link_skipped" => Plain::LinkSkipped { path: field("path").text() },
        b"treehash:error" => Plain::Error {
            path: field("path").text(),
            kind: field("kind").label(),
            message: String::from_utf8(field("message").text()).unwrap(),
        },
        other => panic!("an event that is not treehash's: {}", other.escape_ascii()),
    };
    assert!(fields.is_empty(), "more fields than expected: {fields:?}");
    event
}

/// A value as babeltrace2 prints it.
#[derive(Debug)]
enum Value {
    Number(i128),
    Text(Vec<u8>),
    Array(Vec<Value>),
    Label(Vec<u8>),
}

impl Value {
    fn number<T: TryFrom<i128>>(self) -> T {
        match self {
            Self::Number(number) => T::try_from(number).ok().expect("a number that fits"),
            other => panic!("not a number: {other:?}"),
        }
    }

    fn text(self) -> Vec<u8> {
        match self {
            Self::Text(bytes) => bytes,
            other => panic!("not a text: {other:?}"),
        }
    }

    fn label(self) -> String {
        match self {
            Self::Label(label) => String::from_utf8(label).unwrap(),
            other => panic!("not an enumeration: {other:?}"),
        }
    }

    fn bytes(self) -> [u8; 32] {
        match self {
            Self::Array(values) => values.into_iter().map(Value::number).collect::<Vec<u8>>().try_into().unwrap(),
            other => panic!("not an array: {other:?}"),
        }
    }
}

/// The rest of a line.
struct Text<'a> {
    rest: &'a [u8],
}

impl Text<'_> {
    fn take(&mut self, prefix: &[u8]) -> bool {
        let stripped = self.rest.strip_prefix(prefix);
        self.rest = stripped.unwrap_or(self.rest);
        stripped.is_some()
    }

    fn expect(&mut self, prefix: &[u8]) {
        assert!(self.take(prefix), "expected {} at {}", prefix.escape_ascii(), self.rest.escape_ascii());
    }

    fn word(&mut self) -> String {
        let end = self.rest.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_' && *b != b'-');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        String::from_utf8(word.to_vec()).unwrap()
    }

    fn number(&mut self) -> i128 {
        self.word().parse().expect("a number")
    }

    /// `{ name = value, name = value }`
    fn members(&mut self) -> BTreeMap<String, Value> {
        let mut members = BTreeMap::new();
        self.expect(b"{ ");
        loop {
            let name = self.word();
            self.expect(b" = ");
            members.insert(name, self.value());
            if !self.take(b", ") {
                self.expect(b" }");
                return members;
            }
        }
    }

    fn value(&mut self) -> Value {
        match self.rest.first() {
            Some(b'"') => Value::Text(self.string()),
            Some(b'[') => self.array(),
            Some(b'(') => {
                self.expect(b"( ");
                let label = self.string();
                self.expect(b" : container = ");
                self.number();
                self.expect(b" )");
                Value::Label(label)
            }
            _ => Value::Number(self.number()),
        }
    }

    /// `[ [0] = value, [1] = value ]`
    fn array(&mut self) -> Value {
        let mut values = Vec::new();
        self.expect(b"[");
        while !self.take(b" ]") {
            self.expect(if values.is_empty() { b" [" } else { b", [" });
            assert_eq!(self.number(), values.len() as i128);
            self.expect(b"] = ");
            values.push(self.value());
        }
        Value::Array(values)
    }

    /// A quoted string, with C's escapes.
    fn string(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.expect(b"\"");
        loop {
            let (first, rest) = self.rest.split_first().expect("the end of a text");
            self.rest = rest;
            match first {
                b'"' => return bytes,
                b'\\' => bytes.push(self.escaped()),
                byte => bytes.push(*byte),
            }
        }
    }

    fn escaped(&mut self) -> u8 {
        let (letter, rest) = self.rest.split_first().expect("what is escaped");
        self.rest = rest;
        match letter {
            b'a' => 7,
            b'b' => 8,
            b't' => 9,
            b'n' => 10,
            b'v' => 11,
            b'f' => 12,
            b'r' => 13,
            b'e' => 27,
            b'x' => {
                let (digits, rest) = self.rest.split_at(2);
                self.rest = rest;
                u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
            }
            same => *same,
        }
    }
}

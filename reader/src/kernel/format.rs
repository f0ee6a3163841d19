//! The `format` file of a kernel tracepoint.
//!
//! ```text
//! name: sched_process_exec
//! ID: 365
//! format:
//!   field:unsigned short common_type; offset:0; size:2; signed:0;
//!   …                                              the fields that all events have, up to the first empty line
//!   …                                              the fields common to all events, up to the first empty line
//!   field:__data_loc char[] filename; offset:8; size:4; signed:0;
//!   field:pid_t pid; offset:12; size:4; signed:1;
//!
//! print fmt: …
//! ```

use super::perf::{ENDED, MAPPED, RECORDED, SAMPLED, SOFTWARE, SWITCH, THROTTLED};
use thiserror::Error;

/// Maximum number of fields of an event.
const MAX_FIELDS: usize = 256;
/// Maximum size of a fixed-size field, in bytes; the raw bytes of an event are fewer.
const MAX_SIZE: usize = 1 << 16;

/// The layout of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventFormat {
    /// The event's number, which is in the first two of its raw bytes.
    pub number: u16,
    /// Its own fields, in the order of the file.
    pub fields: Vec<KernelField>,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelField {
    /// The name.
    pub name: String,
    /// The location of the value.
    pub place: Place,
    /// The type of the value.
    pub ty: KernelType,
}

/// The location of a value in the raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a fixed position.
    Fixed {
        /// The first byte.
        offset: usize,
        /// The number of bytes.
        size: usize,
    },
    /// A word in the raw bytes has the offset of the value in its lower 16 bits, and its size in the upper 16.
    Dynamic {
        /// The first byte of the word.
        offset: usize,
        /// True if the offset in the word counts from the end of the word, false if from the start of the raw bytes.
        relative: bool,
    },
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelType {
    /// An integer.
    Integer(KernelInteger),
    /// Text that ends at the first NUL, or where its bytes end.
    Text,
    /// Integers, as many as there are bytes for.
    Array(KernelInteger),
    /// An integer whose values have these names.
    Named(KernelInteger, &'static [(i64, &'static str)]),
}

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelInteger {
    /// Its size: 1, 2, 4 or 8 bytes.
    pub bytes: u8,
    /// True if the value can be negative.
    pub signed: bool,
    /// True for a pointer, or for a byte of a non-numeric value.
    pub hex: bool,
}

/// A `format` file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The event has no number.
    #[error("it has no line `ID: NUMBER`")]
    NoNumber,
    /// A line cannot be read.
    #[error("the line `{0}` is not that of a field")]
    Field(String),
    /// It has too many fields.
    #[error("it has more than {MAX_FIELDS} fields")]
    TooManyFields,
}

impl EventFormat {
    /// Reads a `format` file.
    ///
    /// # Errors
    ///
    /// If it has no event number, or if a field cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let (mut number, mut fields, mut is_own) = (None, Vec::new(), false);
        for line in text.lines() {
            let line = line.trim();
            if let Some(id) = line.strip_prefix("ID:") {
                number = number.or(id.trim().parse().ok());
            } else if let Some(rest) = line.strip_prefix("field:") {
                if !is_own {
                    continue;
                }
                let field = field(rest).ok_or_else(|| FormatError::Field(line.to_owned()))?;
                // A field of size 0 has no value.
                if !matches!(field.place, Place::Fixed { size: 0, .. }) {
                    fields.push(field);
                }
                if fields.len() > MAX_FIELDS {
                    return Err(FormatError::TooManyFields);
                }
            } else if line.starts_with("print fmt:") {
                break;
            } else if line.is_empty() {
                is_own = true;
            }
        }
        Ok(Self { number: number.ok_or(FormatError::NoNumber)?, fields })
    }

    /// The layout of a switch of a thread, with the state that it changes to: `running`, `ready` or `blocked`.
    pub fn switch() -> Self {
        Self { number: SWITCH, fields: vec![text("state", 2, 8)] }
    }

    /// The layout of the raw bytes of [`recorded_thread`](super::recorded_thread).
    pub fn recorded_thread() -> Self {
        Self { number: RECORDED, fields: vec![text("state", 2, 2), text("comm", 4, 16)] }
    }

    /// The layout of the record of [`recording_ended`](super::recording_ended), which has no fields.
    pub fn recording_ended() -> Self {
        Self { number: ENDED, fields: Vec::new() }
    }

    /// The layout of a software event, which has no fields.
    pub fn software() -> Self {
        Self { number: SOFTWARE, fields: Vec::new() }
    }

    /// The layout of a sample of a thread that runs: the addresses of its call stack, from the innermost one.
    pub fn sample() -> Self {
        let ty = KernelType::Array(KernelInteger { bytes: 8, signed: false, hex: true });
        Self { number: SAMPLED, fields: vec![dynamic("callstack", 4, ty)] }
    }

    /// True for a sample, whose kernel counter has a time in place of the number of samples.
    pub const fn is_sample(&self) -> bool {
        self.number == SAMPLED
    }

    /// The layout of the raw bytes of a [`CodeMapping`](super::CodeMapping).
    pub fn code_mapping() -> Self {
        let number = |(name, offset, hex): (&str, usize, bool)| KernelField {
            name: name.to_owned(),
            place: Place::Fixed { offset, size: 8 },
            ty: KernelType::Integer(KernelInteger { bytes: 8, signed: false, hex }),
        };
        let numbers = [("address", 16, true), ("length", 24, true), ("offset", 32, true)].map(number);
        let texts = [dynamic("build_id", 8, KernelType::Text), dynamic("path", 4, KernelType::Text)];
        Self { number: MAPPED, fields: numbers.into_iter().chain(texts).collect() }
    }

    /// The layout of a record which says that the kernel does not sample a thread for a while: its state is `throttled` from now on, or `resumed`.
    pub fn throttle() -> Self {
        Self { number: THROTTLED, fields: vec![text("state", 2, 10)] }
    }

    /// Adds the byte with the kind of interrupt in which the event fired, which all events have.
    pub fn add_flags(&mut self) {
        let ty = KernelType::Integer(KernelInteger { bytes: 1, signed: false, hex: true });
        self.fields.push(KernelField {
            name: "common_flags".to_owned(),
            place: Place::Fixed { offset: 2, size: 1 },
            ty,
        });
    }

    /// Gives the values of an integer field names.
    pub fn name_values(&mut self, field: &str, names: &'static [(i64, &'static str)]) {
        for field in self.fields.iter_mut().filter(|known| known.name == field) {
            if let KernelType::Integer(integer) = field.ty {
                field.ty = KernelType::Named(integer, names);
            }
        }
    }
}

fn text(name: &str, offset: usize, size: usize) -> KernelField {
    KernelField { name: name.to_owned(), place: Place::Fixed { offset, size }, ty: KernelType::Text }
}

/// A field whose offset and size are in the raw bytes, at an offset.
fn dynamic(name: &str, offset: usize, ty: KernelType) -> KernelField {
    KernelField { name: name.to_owned(), place: Place::Dynamic { offset, relative: false }, ty }
}

impl KernelField {
    /// The bytes of the value in the raw bytes of an event; fewer, or none, if the raw bytes are incomplete.
    pub fn bytes<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        let (start, len) = match self.place {
            Place::Fixed { offset, size } => (offset, size),
            Place::Dynamic { offset, relative } => {
                let word = raw.get(offset..).and_then(|rest| rest.first_chunk()).map_or(0, |w| u32::from_le_bytes(*w));
                let base = if relative { offset + 4 } else { 0 };
                (base + (word & 0xffff) as usize, (word >> 16) as usize)
            }
        };
        let rest = raw.get(start..).unwrap_or_default();
        &rest[..len.min(rest.len())]
    }
}

/// Parses `DECLARATION; offset:N; size:N; signed:0|1;`.
fn field(text: &str) -> Option<KernelField> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for (key, value) in parts.filter_map(|part| part.split_once(':')) {
        match key {
            "offset" => offset = Some(value.parse().ok()?),
            "size" => size = Some(value.parse().ok()?),
            "signed" => signed = value == "1",
            _ => {}
        }
    }
    let (offset, size): (usize, usize) = (offset?, size?);
    if offset > MAX_SIZE || size > MAX_SIZE {
        return None;
    }
    let dynamic = [("__data_loc ", false), ("__rel_loc ", true)];
    let dynamic = dynamic.into_iter().find_map(|(word, relative)| Some((declaration.strip_prefix(word)?, relative)));
    if let Some((declaration, relative)) = dynamic {
        let (ty, name) = declaration.rsplit_once(char::is_whitespace)?;
        // The file does not declare a set of CPUs as an array.
        let ty = ty.trim();
        let ty = elements(ty.strip_suffix("[]").unwrap_or(ty).trim(), None, signed);
        return Some(KernelField { name: name.to_owned(), place: Place::Dynamic { offset, relative }, ty });
    }
    let place = Place::Fixed { offset, size };
    let (declaration, count) = match declaration.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((declaration, count)) => (declaration, Some(count)),
        None => (declaration, None),
    };
    let (ty, name) = declaration.trim().rsplit_once(char::is_whitespace)?;
    let ty = ty.trim();
    let name = name.trim_start_matches('*').to_owned();
    if name.is_empty() {
        return None;
    }
    let ty = match (count, size) {
        (Some(count), size) => {
            // The number of elements may be written as the name of a constant.
            let count = count.trim().parse().ok().filter(|count| *count > 0 && size % *count == 0);
            elements(ty, count.map(|count: usize| size / count), signed)
        }
        (None, 1 | 2 | 4 | 8) => {
            let hex = declaration.contains('*');
            KernelType::Integer(KernelInteger { bytes: size as u8, signed: signed && !hex, hex })
        }
        // A structure.
        (None, _) => KernelType::Array(KernelInteger { bytes: 1, signed: false, hex: true }),
    };
    Some(KernelField { name, place, ty })
}

/// The type of an array of `ty`, whose elements have the given size if known.
fn elements(ty: &str, bytes: Option<usize>, signed: bool) -> KernelType {
    let base = ty.strip_prefix("const ").unwrap_or(ty).trim();
    if base == "char" {
        return KernelType::Text;
    }
    let known = match base {
        "u16" | "__u16" | "s16" | "__s16" | "short" | "unsigned short" | "__be16" | "__le16" => 2,
        "u32" | "__u32" | "s32" | "__s32" | "int" | "unsigned int" | "pid_t" | "__be32" | "__le32" => 4,
        "u64" | "__u64" | "s64" | "__s64" | "long" | "unsigned long" | "long long" | "unsigned long long" => 8,
        _ => 1,
    };
    let bytes = bytes.filter(|bytes| matches!(bytes, 1 | 2 | 4 | 8)).unwrap_or(known) as u8;
    let hex = bytes == 1 || base.contains('*');
    KernelType::Array(KernelInteger { bytes, signed: signed && !hex, hex })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Vec<KernelField> {
        let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
        let text = format!("name: x\nID: 372\nformat:\n{common}\n{fields}\nprint fmt: \"field:%d;\", REC->x\n");
        let format = EventFormat::parse(&text).expect("a format");
        assert_eq!(format.number, 372);
        format.fields
    }

    const BYTE: KernelInteger = KernelInteger { bytes: 1, signed: false, hex: true };

    #[test]
    fn types_are_those_of_the_declaration() {
        let fields = parse(
            "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:const char * name;\toffset:32;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] filename;\toffset:40;\tsize:4;\tsigned:0;
\tfield:__rel_loc unsigned long[] ips;\toffset:44;\tsize:4;\tsigned:0;
\tfield:unsigned long args[6];\toffset:48;\tsize:48;\tsigned:0;
\tfield:__data_loc cpumask_t cpus;\toffset:48;\tsize:4;\tsigned:0;
\tfield:int pair[COUNT];\toffset:96;\tsize:8;\tsigned:1;
\tfield:__u8 saddr[4];\toffset:104;\tsize:4;\tsigned:0;
\tfield:struct in6_addr address;\toffset:108;\tsize:16;\tsigned:0;
\tfield:char buf[];\toffset:124;\tsize:0;\tsigned:0;",
        );
        let types: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.ty)).collect();
        let integer = |bytes, signed, hex| KernelInteger { bytes, signed, hex };
        assert_eq!(
            types,
            [
                ("prev_comm", KernelType::Text),
                ("prev_pid", KernelType::Integer(integer(4, true, false))),
                ("name", KernelType::Integer(integer(8, false, true))),
                ("filename", KernelType::Text),
                ("ips", KernelType::Array(integer(8, false, false))),
                ("args", KernelType::Array(integer(8, false, false))),
                ("cpus", KernelType::Array(BYTE)),
                ("pair", KernelType::Array(integer(4, true, false))),
                ("saddr", KernelType::Array(BYTE)),
                ("address", KernelType::Array(BYTE)),
            ]
        );
    }

    #[test]
    fn values_are_found_and_never_beyond_the_end() {
        let fields = parse(
            "\tfield:__data_loc char[] a;\toffset:0;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] b;\toffset:4;\tsize:4;\tsigned:0;
\tfield:int c;\toffset:12;\tsize:4;\tsigned:0;",
        );
        let mut raw = vec![12, 0, 2, 0, 4, 0, 9, 0, 0, 0, 0, 0];
        raw.extend(b"xyz");
        assert_eq!(fields[0].bytes(&raw), b"xy");
        assert_eq!(fields[1].bytes(&raw), b"xyz", "cut off at the end");
        assert_eq!(fields[2].bytes(&raw), b"xyz");
        assert_eq!(fields[2].bytes(&raw[..5]), b"");
        assert_eq!(fields[0].bytes(&[]), b"");
    }

    #[test]
    fn what_is_no_format_is_refused() {
        assert_eq!(EventFormat::parse("name: x\n"), Err(FormatError::NoNumber));
        assert_eq!(EventFormat::parse("ID: 70000\n"), Err(FormatError::NoNumber));
        let line = "field:int x;\toffset:-1;\tsize:4;";
        assert_eq!(EventFormat::parse(&format!("ID: 1\n\n{line}")), Err(FormatError::Field(line.to_owned())));
        for line in
            ["field:int;offset:0;size:4;", "field:int x;size:4;", "field:int x;offset:0;size:99999999;", "field:"]
        {
            assert!(EventFormat::parse(&format!("ID: 1\n\n{line}")).is_err(), "{line}");
        }
        let many = "field:int x;offset:0;size:4;\n".repeat(MAX_FIELDS + 1);
        assert_eq!(EventFormat::parse(&format!("ID: 1\n\n{many}")), Err(FormatError::TooManyFields));
    }
}

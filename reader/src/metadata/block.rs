//! The blocks of the metadata: `trace`, `env`, `clock`, `stream`, `event`.
//!
//! Unknown attributes of an event are kept if they are plain values, such as `model.emf.uri`. All others are skipped: a writer may
//! write more than this reader understands.

use std::sync::Arc;

use super::specifier::{scoped, specifier, type_declaration};
use super::tokens::{
    Input, Parsed, at_keyword, blank, eat, expect, parse_error, parse_error_at, path, shorten, signed_number, text,
    word,
};
use super::types::{StructType, Type};
use super::{Clock, EnvValue, EventClass};
use winnow::combinator::{eof, opt, peek};
use winnow::prelude::*;
use winnow::stream::Location;

/// A value after `=`.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Number(i128),
    Text(String),
}

/// The right-hand side of `:=` or `=`.
enum Entry {
    Type(Type),
    Constant(Constant),
}

#[derive(Default)]
pub(super) struct StreamBlock {
    pub(super) offset: usize,
    pub(super) id: u64,
    pub(super) packet_context: Option<Arc<StructType>>,
    pub(super) event_header: Option<Arc<StructType>>,
    pub(super) event_context: Option<Arc<StructType>>,
}

pub(super) struct EventBlock {
    pub(super) offset: usize,
    pub(super) stream: Option<u64>,
    pub(super) class: EventClass,
}

/// All blocks of the text, before paths are resolved.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) packet_header: Option<Arc<StructType>>,
    pub(super) env: Vec<(String, EnvValue)>,
    pub(super) clocks: Vec<Clock>,
    pub(super) streams: Vec<StreamBlock>,
    pub(super) events: Vec<EventBlock>,
}

impl Blocks {
    /// True if nothing is declared that a packet could belong to.
    pub(super) fn is_empty(&self) -> bool {
        self.packet_header.is_none() && self.streams.is_empty() && self.events.is_empty()
    }
}

/// The whole text.
pub(super) fn blocks(input: &mut Input<'_>) -> Parsed<Blocks> {
    let mut blocks = Blocks::default();
    blank(input)?;
    while opt(eof).parse_next(input)?.is_none() {
        if eat(input, ";")? || type_declaration(input)? {
            continue;
        }
        let offset = input.current_token_start();
        match peek(opt(word)).parse_next(input)? {
            Some("trace") => trace(input, &mut blocks)?,
            Some("env") => env(input, &mut blocks.env)?,
            Some("clock") => blocks.clocks.push(clock(input)?),
            Some("stream") => blocks.streams.push(stream(input, offset)?),
            Some("event") => blocks.events.push(event(input, offset)?),
            Some("callsite") => block(input, &mut |_, _, _| Ok(()))?,
            _ => {
                specifier(input)?;
            }
        }
    }
    Ok(blocks)
}

/// Parses `name { path = constant; path := type; … }`, optionally followed by a semicolon.
fn block<'a>(input: &mut Input<'a>, take: &mut dyn FnMut(&mut Input<'a>, &str, Entry) -> Parsed<()>) -> Parsed<()> {
    word(input)?;
    expect(input, "{")?;
    scoped(input, |input| {
        while !eat(input, "}")? {
            if type_declaration(input)? {
                continue;
            }
            if at_keyword(input, &["struct", "enum", "variant"])? {
                specifier(input)?;
            } else {
                let path = path(input)?.join(".");
                let entry = if eat(input, ":=")? {
                    Entry::Type(specifier(input)?)
                } else {
                    expect(input, "=")?;
                    Entry::Constant(constant(input)?)
                };
                take(input, &path, entry)?;
            }
            expect(input, ";")?;
        }
        Ok(())
    })
}

fn constant(input: &mut Input<'_>) -> Parsed<Constant> {
    if let Some(text) = opt(text).parse_next(input)? {
        return Ok(Constant::Text(text));
    }
    if peek(opt(word)).parse_next(input)?.is_some() {
        return Ok(Constant::Text(path(input)?.join(".")));
    }
    signed_number(input).map(Constant::Number)
}

fn structure_of(input: &Input<'_>, entry: Entry) -> Parsed<Option<Arc<StructType>>> {
    match entry {
        Entry::Type(Type::Struct(ty)) => Ok(Some(ty)),
        _ => Err(parse_error(input, "this must be a structure")),
    }
}

fn id_of(input: &Input<'_>, entry: &Entry) -> Parsed<u64> {
    match entry {
        Entry::Constant(Constant::Number(number)) => match u64::try_from(*number) {
            Ok(id) => Ok(id),
            Err(_) => Err(parse_error(input, "an id must not be negative")),
        },
        _ => Err(parse_error(input, "an id must be a number")),
    }
}

fn trace(input: &mut Input<'_>, blocks: &mut Blocks) -> Parsed<()> {
    block(input, &mut |input, name, entry| {
        match (name, entry) {
            ("uuid", Entry::Constant(Constant::Text(text))) => match parse_uuid(&text) {
                Some(uuid) => blocks.uuid = Some(uuid),
                None => return Err(parse_error(input, format!("`{}` is not a UUID", shorten(&text)))),
            },
            ("major", Entry::Constant(Constant::Number(major))) if major != 1 => {
                return Err(parse_error(input, format!("CTF {major} is not understood; convert the trace to CTF 1.8")));
            }
            ("packet.header", entry) => blocks.packet_header = structure_of(input, entry)?,
            _ => {}
        }
        Ok(())
    })
}

fn env(input: &mut Input<'_>, env: &mut Vec<(String, EnvValue)>) -> Parsed<()> {
    block(input, &mut |_, name, entry| {
        let value = match entry {
            Entry::Constant(Constant::Number(number)) => EnvValue::Integer(number),
            Entry::Constant(Constant::Text(text)) => EnvValue::String(text),
            Entry::Type(_) => return Ok(()),
        };
        env.push((name.to_owned(), value));
        Ok(())
    })
}

fn clock(input: &mut Input<'_>) -> Parsed<Clock> {
    let mut clock = Clock { frequency: 1_000_000_000, ..Clock::default() };
    block(input, &mut |input, name, entry| {
        match (name, entry) {
            ("name", Entry::Constant(Constant::Text(text))) => clock.name = text,
            ("description", Entry::Constant(Constant::Text(text))) => clock.description = text,
            ("uuid", Entry::Constant(Constant::Text(text))) => clock.uuid = parse_uuid(&text),
            ("freq", Entry::Constant(Constant::Number(number))) => match u64::try_from(number) {
                Ok(frequency) if frequency > 0 => clock.frequency = frequency,
                _ => return Err(parse_error(input, "a clock needs a `freq` above 0")),
            },
            ("precision", entry) => clock.precision = id_of(input, &entry)?,
            ("offset_s", Entry::Constant(Constant::Number(number))) => {
                clock.offset_seconds = number;
            }
            ("offset", Entry::Constant(Constant::Number(number))) => {
                clock.offset_cycles = number;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(clock)
}

fn stream(input: &mut Input<'_>, offset: usize) -> Parsed<StreamBlock> {
    let mut stream = StreamBlock { offset, ..StreamBlock::default() };
    block(input, &mut |input, name, entry| {
        match name {
            "id" => stream.id = id_of(input, &entry)?,
            "packet.context" => stream.packet_context = structure_of(input, entry)?,
            "event.header" => stream.event_header = structure_of(input, entry)?,
            "event.context" => stream.event_context = structure_of(input, entry)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(stream)
}

fn event(input: &mut Input<'_>, offset: usize) -> Parsed<EventBlock> {
    let mut stream = None;
    let mut class = EventClass::default();
    block(input, &mut |input, name, entry| {
        match (name, entry) {
            ("id", entry) => class.id = id_of(input, &entry)?,
            ("stream_id", entry) => stream = Some(id_of(input, &entry)?),
            ("name", Entry::Constant(Constant::Text(text))) => class.name = text,
            ("loglevel", Entry::Constant(Constant::Number(level))) => {
                class.loglevel = i64::try_from(level).ok();
            }
            ("context", entry) => class.context = structure_of(input, entry)?,
            ("fields", entry) => class.fields = structure_of(input, entry)?,
            (name, Entry::Constant(Constant::Text(text))) => {
                class.attributes.push((name.to_owned(), text));
            }
            (name, Entry::Constant(Constant::Number(number))) => {
                class.attributes.push((name.to_owned(), number.to_string()));
            }
            _ => {}
        }
        Ok(())
    })?;
    if class.name.is_empty() {
        return Err(parse_error_at(offset, "an event needs a `name`"));
    }
    Ok(EventBlock { offset, stream, class })
}

/// The 16 bytes of a UUID with 32 hexadecimal digits; the positions of hyphens are ignored.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex).map(u128::to_be_bytes)
}

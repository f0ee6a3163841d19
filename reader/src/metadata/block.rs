//! The blocks of the metadata: `trace`, `env`, `clock`, `stream`, `event`.
//!
//! Attributes that are not known are kept where they are plain values (an event's `model.emf.uri` is one), and
//! otherwise passed over: a writer may say more than this reader understands.

use std::sync::Arc;

use super::lexer::{Token, shorten};
use super::parser::{Flaw, Parser};
use super::types::{StructType, Type};
use super::{Clock, EnvValue, EventClass};

/// What stands behind `=`.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Number(i128),
    Text(String),
}

/// What stands behind `:=` or `=`, with the offset of its name.
enum Entry {
    Type(Type),
    Constant(Constant),
}

/// A `stream` block.
#[derive(Default)]
pub(super) struct StreamBlock {
    pub(super) offset: usize,
    pub(super) id: u64,
    pub(super) packet_context: Option<Arc<StructType>>,
    pub(super) event_header: Option<Arc<StructType>>,
    pub(super) event_context: Option<Arc<StructType>>,
}

/// An `event` block.
pub(super) struct EventBlock {
    pub(super) offset: usize,
    pub(super) stream: Option<u64>,
    pub(super) class: EventClass,
}

/// Everything that the text says, before paths are resolved.
#[derive(Default)]
pub(super) struct Blocks {
    pub(super) uuid: Option<[u8; 16]>,
    pub(super) packet_header: Option<Arc<StructType>>,
    pub(super) env: Vec<(String, EnvValue)>,
    pub(super) clocks: Vec<Clock>,
    pub(super) streams: Vec<StreamBlock>,
    pub(super) events: Vec<EventBlock>,
}

impl Parser<'_> {
    /// The whole text.
    pub(super) fn blocks(&mut self) -> Result<Blocks, Flaw> {
        let mut blocks = Blocks::default();
        while *self.peek() != Token::End {
            if self.eat(";")? || self.type_declaration()? {
                continue;
            }
            let offset = self.offset;
            match *self.peek() {
                Token::Word("trace") => self.trace(&mut blocks)?,
                Token::Word("env") => self.env(&mut blocks.env)?,
                Token::Word("clock") => {
                    let clock = self.clock()?;
                    blocks.clocks.push(clock);
                }
                Token::Word("stream") => {
                    let stream = self.stream(offset)?;
                    blocks.streams.push(stream);
                }
                Token::Word("event") => {
                    let event = self.event(offset)?;
                    blocks.events.push(event);
                }
                Token::Word("callsite") => self.block(|_, _, _| Ok(()))?,
                _ => {
                    self.specifier()?;
                }
            }
        }
        Ok(blocks)
    }

    /// `name { path = constant; path := type; … }`, after which a semicolon may stand.
    fn block(&mut self, mut take: impl FnMut(&mut Self, &str, Entry) -> Result<(), Flaw>) -> Result<(), Flaw> {
        self.advance()?;
        self.expect("{")?;
        self.scoped(|parser| {
            while !parser.eat("}")? {
                if parser.type_declaration()? {
                    continue;
                }
                if matches!(parser.peek(), Token::Word("struct" | "enum" | "variant")) {
                    parser.specifier()?;
                    parser.expect(";")?;
                    continue;
                }
                let path = parser.path()?.join(".");
                let entry = if parser.eat(":=")? {
                    Entry::Type(parser.specifier()?)
                } else {
                    parser.expect("=")?;
                    Entry::Constant(parser.constant()?)
                };
                take(parser, &path, entry)?;
                parser.expect(";")?;
            }
            Ok(())
        })
    }

    fn constant(&mut self) -> Result<Constant, Flaw> {
        match self.peek() {
            Token::Text(text) => {
                let text = text.clone();
                self.advance()?;
                Ok(Constant::Text(text))
            }
            Token::Word(_) => Ok(Constant::Text(self.path()?.join("."))),
            _ => self.signed_number().map(Constant::Number),
        }
    }

    fn structure_of(&self, entry: Entry) -> Result<Option<Arc<StructType>>, Flaw> {
        match entry {
            Entry::Type(Type::Struct(ty)) => Ok(Some(ty)),
            _ => self.flaw("this must be a structure"),
        }
    }

    fn id_of(&self, entry: &Entry) -> Result<u64, Flaw> {
        match entry {
            Entry::Constant(Constant::Number(number)) => match u64::try_from(*number) {
                Ok(id) => Ok(id),
                Err(_) => self.flaw("an id must not be negative"),
            },
            _ => self.flaw("an id must be a number"),
        }
    }

    fn trace(&mut self, blocks: &mut Blocks) -> Result<(), Flaw> {
        self.block(|parser, name, entry| {
            match (name, entry) {
                ("uuid", Entry::Constant(Constant::Text(text))) => match parse_uuid(&text) {
                    Some(uuid) => blocks.uuid = Some(uuid),
                    None => return parser.flaw(format!("`{}` is no UUID", shorten(&text))),
                },
                ("major", Entry::Constant(Constant::Number(major))) if major != 1 => {
                    return parser.flaw(format!("CTF {major} is not understood; convert the trace to CTF 1.8"));
                }
                ("packet.header", entry) => blocks.packet_header = parser.structure_of(entry)?,
                _ => {}
            }
            Ok(())
        })
    }

    fn env(&mut self, env: &mut Vec<(String, EnvValue)>) -> Result<(), Flaw> {
        self.block(|_, name, entry| {
            let value = match entry {
                Entry::Constant(Constant::Number(number)) => EnvValue::Integer(number),
                Entry::Constant(Constant::Text(text)) => EnvValue::String(text),
                Entry::Type(_) => return Ok(()),
            };
            env.push((name.to_owned(), value));
            Ok(())
        })
    }

    fn clock(&mut self) -> Result<Clock, Flaw> {
        let mut clock = Clock {
            name: String::new(),
            uuid: None,
            description: String::new(),
            frequency: 1_000_000_000,
            precision: 0,
            offset_seconds: 0,
            offset_cycles: 0,
        };
        self.block(|parser, name, entry| {
            match (name, entry) {
                ("name", Entry::Constant(Constant::Text(text))) => clock.name = text,
                ("description", Entry::Constant(Constant::Text(text))) => clock.description = text,
                ("uuid", Entry::Constant(Constant::Text(text))) => clock.uuid = parse_uuid(&text),
                ("freq", Entry::Constant(Constant::Number(number))) => match u64::try_from(number) {
                    Ok(frequency) if frequency > 0 => clock.frequency = frequency,
                    _ => return parser.flaw("a clock needs a `freq` above 0"),
                },
                ("precision", entry) => clock.precision = parser.id_of(&entry)?,
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

    fn stream(&mut self, offset: usize) -> Result<StreamBlock, Flaw> {
        let mut stream = StreamBlock { offset, ..StreamBlock::default() };
        self.block(|parser, name, entry| {
            match name {
                "id" => stream.id = parser.id_of(&entry)?,
                "packet.context" => stream.packet_context = parser.structure_of(entry)?,
                "event.header" => stream.event_header = parser.structure_of(entry)?,
                "event.context" => stream.event_context = parser.structure_of(entry)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(stream)
    }

    fn event(&mut self, offset: usize) -> Result<EventBlock, Flaw> {
        let mut stream = None;
        let mut class = EventClass {
            id: 0,
            stream_id: 0,
            name: String::new(),
            loglevel: None,
            attributes: Vec::new(),
            context: None,
            fields: None,
        };
        self.block(|parser, name, entry| {
            match (name, entry) {
                ("id", entry) => class.id = parser.id_of(&entry)?,
                ("stream_id", entry) => stream = Some(parser.id_of(&entry)?),
                ("name", Entry::Constant(Constant::Text(text))) => class.name = text,
                ("loglevel", Entry::Constant(Constant::Number(level))) => {
                    class.loglevel = i64::try_from(level).ok();
                }
                ("context", entry) => class.context = parser.structure_of(entry)?,
                ("fields", entry) => class.fields = parser.structure_of(entry)?,
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
            return Err(Flaw { offset, reason: "an event needs a `name`".to_owned() });
        }
        Ok(EventBlock { offset, stream, class })
    }
}

/// The 16 bytes of a UUID in its usual form of 32 hexadecimal digits, whatever hyphens are between them.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|b| *b != b'-')
        .map(|b| char::from(b).to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    let pairs: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).collect();
    (digits.len() == 32).then_some(())?;
    pairs.try_into().ok()
}

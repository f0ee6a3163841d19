//! Generates traces from a seed: any schema, with losses.

mod any_trace;

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// xorshift64.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = (self.0 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 29;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    fn bytes(&mut self, count: usize, out: &mut Vec<u8>) {
        (0..count).for_each(|_| out.push(self.number() as u8));
    }
}

/// The type of a field.
#[derive(Debug)]
pub enum Field {
    /// An integer or a floating-point number, and its size.
    Number(&'static str, usize),
    /// A byte of 0 or 1.
    Bool,
    /// Bytes up to a NUL.
    Text,
    /// An enumeration with a label for each of three values.
    Enum,
    /// An enumeration with labels for ranges.
    Ranges,
    /// A given number of bytes.
    Bytes(usize),
    /// A given number of characters.
    Characters(usize),
    /// A given number of elements of a type.
    Array(Box<Field>, usize),
    /// A sequence: the number of elements, then the elements.
    Sequence(Box<Field>),
    /// Members, called `m0` and so on.
    Struct(Vec<Field>),
    /// An optional value.
    Optional(Box<Field>),
    /// An optional value of one of five types.
    Any,
}

const NUMBERS: [(&str, usize); 11] = [
    ("integer { size = 8; align = 8; signed = true; }", 1),
    ("uint8_t", 1),
    ("integer { size = 16; align = 8; signed = true; byte_order = be; }", 2),
    ("uint16_t", 2),
    ("uint32_t", 4),
    ("integer { size = 32; align = 8; signed = true; }", 4),
    ("uint64_t", 8),
    ("integer { size = 64; align = 8; signed = true; }", 8),
    ("integer { size = 64; align = 8; signed = false; base = 16; byte_order = be; }", 8),
    ("floating_point { exp_dig = 8; mant_dig = 24; align = 8; }", 4),
    ("floating_point { exp_dig = 11; mant_dig = 53; align = 8; }", 8),
];
const BYTE: &str = "enum : integer { size = 8; align = 8; signed = false; }";

impl Field {
    /// Any type; structures only at depth 0.
    pub fn random(random: &mut Random, depth: u32) -> Self {
        let number = |random: &mut Random| {
            let (text, size) = NUMBERS[random.below(NUMBERS.len() as u64) as usize];
            Self::Number(text, size)
        };
        match random.below(if depth == 0 { 16 } else { 9 }) {
            0..3 => number(random),
            3 => Self::Bool,
            4 => Self::Text,
            5 => Self::Enum,
            6 => Self::Ranges,
            7 => Self::Bytes(1 + random.below(20) as usize),
            8 => Self::Characters(1 + random.below(9) as usize),
            // Not 8-bit elements: those would be bytes.
            9 => Self::Array(Box::new(Self::Number("uint32_t", 4)), random.below(4) as usize + 1),
            10 => Self::Sequence(Box::new(Self::Number("integer { size = 64; align = 8; signed = true; }", 8))),
            11 => Self::Sequence(Box::new(Self::Number("uint8_t", 1))),
            12 => Self::Struct((0..random.below(4)).map(|_| Self::random(random, depth + 1)).collect()),
            13 => Self::Optional(Box::new(number(random))),
            14 => Self::Optional(Box::new(Self::Text)),
            _ => Self::Any,
        }
    }

    /// The declaration of a member called `name`.
    fn declare(&self, name: &str) -> String {
        match self {
            Self::Number(text, _) => format!("{text} {name};"),
            Self::Bool => format!("bool {name};"),
            Self::Text => format!("string {name};"),
            Self::Enum => format!("{BYTE} {{ Idle = 0, \"Run now\" = 1, Stop = 9 }} {name};"),
            Self::Ranges => format!("{BYTE} {{ low = 0 ... 100, high = 101 ... 255 }} {name};"),
            Self::Bytes(count) => format!("uint8_t {name}[{count}];"),
            Self::Characters(count) => {
                format!("integer {{ size = 8; align = 8; signed = false; encoding = UTF8; }} {name}[{count}];")
            }
            Self::Array(element, count) => format!("{}[{count}];", element.declare(name).trim_end_matches(';')),
            Self::Sequence(element) => {
                format!("uint32_t _{name}_length; {}[ _{name}_length ];", element.declare(name).trim_end_matches(';'))
            }
            Self::Struct(members) => {
                let mut text = "struct { ".to_owned();
                members.iter().enumerate().for_each(|(at, member)| text += &member.declare(&format!("_m{at}")));
                format!("{text} }} {name};")
            }
            Self::Optional(value) => {
                let some = value.declare("some");
                format!(
                    "{BYTE} {{ none = 0, some = 1 }} _{name}_tag; variant <_{name}_tag> {{ struct {{ }} none; {some} }} {name};"
                )
            }
            Self::Any => format!(
                "{BYTE} {{ none = 0, u64 = 1, i64 = 2, f64 = 3, boolean = 4, text = 5 }} _{name}_tag; variant <_{name}_tag> \
                 {{ struct {{ }} none; uint64_t u64; integer {{ size = 64; align = 8; signed = true; }} i64; \
                 floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} f64; bool boolean; string text; }} {name};"
            ),
        }
    }

    fn write(&self, random: &mut Random, out: &mut Vec<u8>) {
        match self {
            Self::Number(_, size) => random.bytes(*size, out),
            Self::Bool => out.push(random.below(2) as u8),
            Self::Text => {
                (0..random.below(12)).for_each(|_| out.push(1 + random.below(255) as u8));
                out.push(0);
            }
            Self::Enum => out.push([0, 1, 9, 77][random.below(4) as usize]),
            Self::Ranges => random.bytes(1, out),
            Self::Bytes(count) | Self::Characters(count) => random.bytes(*count, out),
            Self::Array(element, count) => (0..*count).for_each(|_| element.write(random, out)),
            Self::Sequence(element) => {
                let count = random.below(5);
                out.extend((count as u32).to_le_bytes());
                (0..count).for_each(|_| element.write(random, out));
            }
            Self::Struct(members) => members.iter().for_each(|member| member.write(random, out)),
            Self::Optional(value) => {
                let some = random.below(2) as u8;
                out.push(some);
                if some == 1 {
                    value.write(random, out);
                }
            }
            Self::Any => {
                let tag = random.below(6) as u8;
                out.push(tag);
                match tag {
                    1..=3 => random.bytes(8, out),
                    4 => Self::Bool.write(random, out),
                    5 => Self::Text.write(random, out),
                    _ => {}
                }
            }
        }
    }
}

/// A kind of event.
#[derive(Debug)]
pub struct EventKind {
    /// Its name.
    pub name: String,
    /// The names and types of its fields.
    pub fields: Vec<(String, Field)>,
}

/// Description of a generated trace.
#[derive(Debug)]
pub struct TraceSpec {
    /// The UUID of the trace.
    pub uuid: [u8; 16],
    /// Its host.
    pub host: String,
    /// The name of its session.
    pub session: String,
    /// The time of its first event, in nanoseconds since the epoch.
    pub begin_ns: u64,
    /// Maximum time between two events, in nanoseconds.
    pub step_ns: u64,
    /// The kinds of events.
    pub kinds: Vec<EventKind>,
    /// Number of streams.
    pub streams: u64,
    /// Number of packets per stream.
    pub packets: u64,
    /// Maximum number of events per packet.
    pub packet_events: u64,
    /// True if packets and events are missing.
    pub loses: bool,
    /// True if events have contexts. The first kind then has one that the other kinds lack.
    pub contexts: bool,
}

impl TraceSpec {
    fn metadata(&self) -> String {
        let hex = format!("{:032x}", u128::from_be_bytes(self.uuid));
        let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let time = |size: u32, align: u32| {
            format!("integer {{ size = {size}; align = {align}; signed = false; map = clock.monotonic.value; }}")
        };
        let mut text = format!(
            "/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 8; align = 8; signed = false; }} := bool;
trace {{ major = 1; minor = 8; uuid = \"{uuid}\"; byte_order = le;
  packet.header := struct {{ uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; }}; }};
env {{ hostname = \"{}\"; trace_name = \"{}\"; vpid = 4242; }};
clock {{ name = monotonic; freq = 1000000000; offset = 0; absolute = true; }};
stream {{ id = 0; packet.context := struct {{ {time64} timestamp_begin; {time64} timestamp_end; uint64_t content_size;
  uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t tid; uint64_t events_before; }};
  event.header := struct {{ uint16_t id; {} timestamp; }} align(8); {} }};\n",
            quoted(&self.host),
            quoted(&self.session),
            time(48, 1),
            if self.contexts { "event.context := struct { string _procname; uint16_t _cpu; };" } else { "" },
            time64 = time(64, 8),
        );
        for (id, kind) in self.kinds.iter().enumerate() {
            let _ = write!(
                text,
                "event {{ name = \"{}\"; id = {id}; stream_id = 0; {} fields := struct {{ ",
                quoted(&kind.name),
                if self.contexts && id == 0 { "context := struct { uint32_t _vtid; };" } else { "" }
            );
            kind.fields.iter().for_each(|(name, field)| text += &field.declare(&format!("_{name}")));
            text += " }; };\n";
        }
        text
    }

    /// Writes the trace as a CTF directory, and returns the number of events.
    ///
    /// # Panics
    ///
    /// If the directory cannot be written.
    pub fn write(&self, directory: &Path, random: &mut Random) -> u64 {
        fs::create_dir_all(directory).expect("a directory");
        fs::write(directory.join("metadata"), self.metadata()).expect("a file");
        let mut all = 0;
        for stream in 0..self.streams {
            let (mut bytes, mut now) = (Vec::new(), self.begin_ns);
            let (mut before, mut discarded, mut number) = (0_u64, 0_u64, 0_u64);
            for _ in 0..self.packets {
                let (mut records, begin) = (Vec::new(), now);
                let events = 1 + random.below(self.packet_events);
                for _ in 0..events {
                    now += 1 + random.below(self.step_ns);
                    let id = random.below(self.kinds.len() as u64);
                    records.extend((now << 16 | id).to_le_bytes());
                    if self.contexts {
                        records.extend([&b"\0"[..], b"main\0", b"worker \xff\0"][random.below(3) as usize]);
                        random.bytes(2, &mut records);
                        if id == 0 {
                            random.bytes(4, &mut records);
                        }
                    }
                    self.kinds[id as usize].fields.iter().for_each(|(_, field)| field.write(random, &mut records));
                }
                if self.loses && random.below(3) == 0 {
                    discarded += random.below(9);
                }
                let bits = 8 * (32 + 6 * 8 + 4 + 8 + records.len() as u64);
                bytes.extend(0xC1FC_1FC1_u32.to_le_bytes());
                bytes.extend(self.uuid);
                bytes.extend(0_u32.to_le_bytes());
                for word in [stream, begin, now, bits, bits, number, discarded] {
                    bytes.extend(word.to_le_bytes());
                }
                bytes.extend((1000 + stream as u32).to_le_bytes());
                bytes.extend(before.to_le_bytes());
                bytes.extend(records);
                (before, number, all) = (before + events, number + 1, all + events);
                if self.loses && random.below(4) == 0 {
                    (before, number) = (before + 10, number + 1);
                }
            }
            fs::write(directory.join(format!("stream{stream}")), bytes).expect("a file");
        }
        all
    }
}

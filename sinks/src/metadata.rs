//! The CTF metadata of a trace: the layout of its packets and records, in TSDL.
//!
//! Packets have the layout of `tracepoint::channel`: packed and little-endian. The only field with an alignment of more than a byte is
//! `events_before`: its 64-bit alignment accounts for four bytes of padding before it. The time of an event is aligned to a bit, with the same result
//! as an alignment to a byte: Babeltrace 1 aborts on a 48-bit integer that is aligned to a byte.

mod tsdl;
mod types;

use crate::account::uuid_text;
use crate::description::{ChannelDescription, EventDescription};
use crate::trace_info::{ClockInfo, TraceInfo};
use std::fmt::Write;
use tracepoint_reader::metadata::with_checksum;

/// A part of the metadata, with its checksum. The metadata of a trace is the concatenation of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataText(String);

/// Returns the complete metadata of a trace with these channels and events.
pub fn metadata(trace: &TraceInfo, channels: &[ChannelDescription], events: &[EventDescription]) -> String {
    MetadataText::begin(trace, channels).0 + MetadataText::events(events).as_str()
}

const PREAMBLE: &str = "/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; } := bool;
typealias integer { size = 64; align = 8; signed = false; } := duration_ns;
";

impl MetadataText {
    /// Returns the first part: trace, environment, clock, channels.
    pub fn begin(trace: &TraceInfo, channels: &[ChannelDescription]) -> Self {
        let mut out = PREAMBLE.to_owned();
        let _ = write!(
            out,
            "
trace {{
\tmajor = 1;
\tminor = 8;
\tuuid = \"{}\";
\tbyte_order = le;
\tpacket.header := struct {{
\t\tuint32_t magic;
\t\tuint8_t uuid[16];
\t\tuint32_t stream_id;
\t\tuint64_t stream_instance_id;
\t}};
}};
",
            uuid_text(trace.uuid)
        );
        environment(&mut out, trace);
        clock(&mut out, trace);
        for channel in channels {
            stream(&mut out, channel, clock_name(trace), owner(trace));
        }
        Self(with_checksum(out))
    }

    /// Returns another part: events.
    pub fn events(events: &[EventDescription]) -> Self {
        let mut out = String::new();
        for event in events {
            out.push('\n');
            tsdl::comment(&mut out, "", event.doc);
            let _ = write!(
                out,
                "event {{
\tname = {};
\tid = {};
\tstream_id = {};
\tloglevel = {};
\tfields := struct {{
",
                tsdl::literal(&event.name),
                event.id,
                event.class,
                event.level as u8
            );
            types::declare(&mut out, event.fields);
            out.push_str("\t};\n};\n");
        }
        Self(with_checksum(out))
    }

    /// Returns another part: a channel added during recording, and modules in addition to the trace's.
    pub fn added_channel(trace: &TraceInfo, channel: &ChannelDescription, modules: &[String]) -> Self {
        let names = module_names(trace.process.modules.len()..);
        let entries: Vec<_> = names.zip(modules).collect();
        let mut out = String::new();
        if !entries.is_empty() {
            out = environment_statements(
                &entries.iter().map(|(name, text)| (name.as_str(), EnvironmentValue::Text(text))).collect::<Vec<_>>(),
            );
        }
        stream(&mut out, channel, clock_name(trace), owner(trace));
        Self(with_checksum(out))
    }

    /// Returns the description of a channel in a process's trace whose clock has this name.
    pub(crate) fn channel(channel: &ChannelDescription, clock: &str) -> String {
        let mut out = String::new();
        stream(&mut out, channel, clock, THREAD);
        with_checksum(out)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes the environment, with LTTng's names, which viewers look for.
fn environment(out: &mut String, trace: &TraceInfo) {
    use EnvironmentValue::{Number, Text};
    let version = |part: &str| Number(part.parse().unwrap_or(0));
    let process = &trace.process;
    let of_kernel = !process.kernel.is_empty();
    let mut entries = vec![
        ("domain", Text(if of_kernel { "kernel" } else { "ust" })),
        ("tracer_name", Text("tracepoint")),
        ("tracer_major", version(env!("CARGO_PKG_VERSION_MAJOR"))),
        ("tracer_minor", version(env!("CARGO_PKG_VERSION_MINOR"))),
        ("tracer_patchlevel", version(env!("CARGO_PKG_VERSION_PATCH"))),
        ("tracer_buffering_scheme", Text(if of_kernel { "global" } else { "pid" })),
        ("architecture_bit_width", Number(usize::BITS.into())),
        ("trace_name", Text(&trace.name)),
        ("hostname", Text(&process.hostname)),
    ];
    if of_kernel {
        entries.extend([("sysname", Text("Linux")), ("kernel_release", Text(&process.kernel))]);
    } else {
        entries.extend([("procname", Text(&process.name)), ("vpid", Number(process.pid.into()))]);
    }
    if !process.executable.is_empty() {
        entries.push(("executable", Text(&process.executable)));
    }
    let names: Vec<_> = module_names(0..process.modules.len()).collect();
    entries.extend(names.iter().zip(&process.modules).map(|(name, module)| (name.as_str(), Text(module))));
    out.push_str(&environment_statements(&entries));
}

/// Returns the names of modules in the environment.
fn module_names(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = String> {
    numbers.map(|number| format!("module_{number}"))
}

/// A value in the environment of a trace.
#[derive(Clone, Copy, Debug)]
pub enum EnvironmentValue<'a> {
    /// A text; control characters are replaced.
    Text(&'a str),
    /// A number.
    Number(u64),
}

/// Returns an environment block, which may also be appended to the metadata of a written trace.
pub fn environment_block(entries: &[(&str, EnvironmentValue<'_>)]) -> String {
    with_checksum(environment_statements(entries))
}

fn environment_statements(entries: &[(&str, EnvironmentValue<'_>)]) -> String {
    let mut out = String::from("\nenv {\n");
    for (name, value) in entries {
        let _ = match value {
            EnvironmentValue::Text(text) => writeln!(out, "\t{name} = {};", tsdl::literal(text)),
            EnvironmentValue::Number(number) => writeln!(out, "\t{name} = {number};"),
        };
    }
    out.push_str("};\n");
    out
}

/// Returns whether the clock is the machine's, with a known offset.
fn is_monotonic(trace: &TraceInfo) -> bool {
    trace.clock != ClockInfo::default()
}

fn clock_name(trace: &TraceInfo) -> &'static str {
    if is_monotonic(trace) { "monotonic" } else { "program" }
}

fn clock(out: &mut String, trace: &TraceInfo) {
    let _ = writeln!(out, "\nclock {{\n\tname = \"{}\";", clock_name(trace));
    if let Some(uuid) = trace.clock.uuid {
        let _ = writeln!(out, "\tuuid = \"{}\";", uuid_text(uuid));
    }
    let description = if is_monotonic(trace) { "Monotonic Clock" } else { "A clock of the program's own" };
    // `absolute`: the offset is relative to the epoch, so that traces of several machines can be merged.
    let _ = write!(
        out,
        "\tdescription = \"{description}\";
\tfreq = 1000000000;
\toffset = {};
\tabsolute = {};
}};
",
        trace.clock.offset,
        is_monotonic(trace)
    );
}

/// The name of the packet field with the number of the stream's owner.
const THREAD: &str = "tid";

fn owner(trace: &TraceInfo) -> &'static str {
    if trace.process.kernel.is_empty() { THREAD } else { "cpu_id" }
}

fn stream(out: &mut String, channel: &ChannelDescription, clock: &str, owner: &str) {
    out.push('\n');
    tsdl::comment(out, "", &format!("Channel {}, policy {}", channel.name, channel.policy.name()));
    let time = |bits: u8, align: u8| {
        format!("integer {{ size = {bits}; align = {align}; signed = false; map = clock.{clock}.value; }}")
    };
    let _ = write!(
        out,
        "stream {{
\tid = {};
\tpacket.context := struct {{
\t\t{} timestamp_begin;
\t\t{} timestamp_end;
\t\tuint64_t content_size;
\t\tuint64_t packet_size;
\t\tuint64_t packet_seq_num;
\t\tuint64_t events_discarded;
\t\tuint32_t {owner};
\t\tinteger {{ size = 64; align = 64; signed = false; }} events_before;
\t}};
\tevent.header := struct {{
\t\tuint16_t id;
\t\t{} timestamp;
\t}} align(8);
",
        channel.class,
        time(64, 8),
        time(64, 8),
        time(48, 1)
    );
    if !channel.context.is_empty() {
        out.push_str("\tevent.context := struct {\n");
        types::declare(out, &channel.context);
        out.push_str("\t};\n");
    }
    out.push_str("};\n");
}

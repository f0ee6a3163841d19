//! The origin of an event.

use crate::event::Event;
use crate::metadata::EnvValue;
use crate::value::Value;

/// Names of context members that identify the process and thread of an event. An event's own context takes precedence over its packet's context.
pub(crate) const MEMBERS: [&str; 5] = ["vpid", "vtid", "pid", "tid", "procname"];

/// The host, program, process and thread of an event, as far as the trace records them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin<'a> {
    /// The name of the host.
    pub host: Option<&'a str>,
    /// The name of the process.
    pub program: Option<&'a str>,
    /// The process id, in its own PID namespace if known.
    pub pid: Option<u64>,
    /// The thread id, likewise.
    pub tid: Option<u64>,
    /// The name of the thread, if the channel records it; usually UTF-8.
    pub thread: Option<&'a [u8]>,
}

impl Event {
    /// Its origin. Searches the contexts and the environment of the trace by name.
    pub fn origin(&self) -> Origin<'_> {
        let metadata = &self.stream.metadata;
        let text = |name: &str| match metadata.env_value(name) {
            Some(EnvValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let contexts = [self.context.as_ref(), self.stream_context.as_ref(), self.packet_context.as_deref()];
        let member = |name: &str| contexts.iter().flatten().find_map(|context| context.get(name));
        let number = |name: &str| member(name).and_then(Value::as_u64);
        let pid = match metadata.env_value("vpid") {
            Some(EnvValue::Integer(pid)) => u64::try_from(*pid).ok(),
            _ => None,
        };
        Origin {
            host: text("hostname"),
            program: text("procname"),
            pid: number("vpid").or_else(|| number("pid")).or(pid),
            tid: number("vtid").or_else(|| number("tid")),
            thread: member("procname").and_then(Value::as_bytes).filter(|name| !name.is_empty()),
        }
    }
}

//! Comma-separated values: a line for each event and each loss, one column for each field.

mod formula;

use std::collections::HashSet;
use std::io::{self, Write};

use tracepoint_reader::{Damage, Event, Metadata, Value, json};

use crate::format::{Format, LossReport, Needs, Span, Summary};
use crate::plain::{self, Plain};
use crate::sources::{Sources, ThreadId};

pub use formula::guard_formula;

/// The columns before the field columns.
const COLUMNS: [&str; 11] =
    ["type", "time_ns", "host", "program", "pid", "tid", "thread", "event", "level", "lost_events", "lost_packets"];

/// Writes comma-separated values (RFC 4180), with a header line.
///
/// `type` is `event`, `loss` or `damage`. `level` is the name of a level such as `Info`, or a number if the level is specific to another tracer.
/// Times are nanoseconds since the epoch; the time of a loss is its end. Unknown numbers are empty. Texts are written unchanged, unless [on
/// request](Self::guard_formulas); arrays and structures are written as JSON, bytes in hexadecimal. A field with the name of one of the columns
/// above, such as `pid`, gets the column `field.pid`.
#[derive(Debug)]
pub struct Csv<W: Write> {
    out: csv::Writer<W>,
    fields: Vec<String>,
    has_header: bool,
    guards_formulas: bool,
}

impl<W: Write> Csv<W> {
    /// Creates a writer for these fields, one column each. Other fields are omitted.
    pub fn new(out: W, fields: Vec<String>) -> Self {
        Self { out: csv::Writer::from_writer(out), fields, has_header: false, guards_formulas: false }
    }

    /// Prefixes each text that a spreadsheet would interpret as a formula with `'`. Numbers stay unchanged.
    #[must_use]
    pub fn guard_formulas(mut self, is_on: bool) -> Self {
        self.guards_formulas = is_on;
        self
    }

    /// The names accepted by `selected` among all fields that events of these traces can have, in the order of their declarations.
    pub fn fields_of<'a>(traces: impl Iterator<Item = &'a Metadata>, selected: impl Fn(&str) -> bool) -> Vec<String> {
        let mut fields = Vec::new();
        let mut known = HashSet::new();
        for stream in traces.flat_map(Metadata::streams) {
            for class in stream.events.values().filter(|class| selected(&class.name)) {
                fields.extend(plain::names(class, stream).filter(|name| known.insert(*name)).map(str::to_owned));
            }
        }
        fields
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.has_header {
            self.has_header = true;
            for column in COLUMNS {
                self.cell(column)?;
            }
            for field in self.fields.clone() {
                let is_taken = COLUMNS.contains(&field.as_str());
                self.text(&if is_taken { format!("field.{field}") } else { field })?;
            }
            self.end_row()?;
        }
        Ok(())
    }

    /// Writes the columns before the field columns, and an empty cell for each field.
    fn row(&mut self, first: [&str; COLUMNS.len()]) -> io::Result<()> {
        self.begin()?;
        for cell in first {
            self.text(cell)?;
        }
        for _ in 0..self.fields.len() {
            self.cell("")?;
        }
        self.end_row()
    }

    /// Writes a text cell. The text may come from a traced process.
    fn text(&mut self, text: &str) -> io::Result<()> {
        let text = if self.guards_formulas { guard_formula(text) } else { text.into() };
        self.cell(&text)
    }

    fn cell(&mut self, text: &str) -> io::Result<()> {
        self.out.write_field(text).map_err(io_error)
    }

    fn value(&mut self, value: &Value) -> io::Result<()> {
        match Plain::from(value) {
            Plain::None => self.cell(""),
            Plain::Bool(truth) => self.cell(&truth.to_string()),
            Plain::Unsigned(number) => self.cell(&number.to_string()),
            Plain::Signed(number) => self.cell(&number.to_string()),
            Plain::Float(number) => self.cell(&number.to_string()),
            Plain::Text(text) => self.text(&text),
            // Serialisation of names and values cannot fail: all keys are texts.
            Plain::Array(_) | Plain::Struct(_) | Plain::Variant(..) => {
                self.cell(&json::to_string(value).unwrap_or_default())
            }
        }
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.out.write_record(None::<&[u8]>).map_err(io_error)
    }
}

/// Converts an error, keeping the kind of an I/O error: callers distinguish a closed pipe from a full disk.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The columns `host` to `thread`.
fn origin(thread: ThreadId, sources: &Sources) -> [String; 5] {
    let (process, thread) = (sources.process_of(thread), sources.thread(thread));
    let known = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [text(&process.host), text(&process.program), known(process.pid), known(thread.tid), text(&thread.name)]
}

impl<W: Write> Format for Csv<W> {
    fn needs(&self) -> Needs {
        Needs::EVENTS
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        self.begin()?;
        let time = event.stream.clock().map(|_| event.time_ns.to_string()).unwrap_or_default();
        let number = || event.loglevel().map(|level| level.to_string()).unwrap_or_default();
        let level = event.level_name().map_or_else(number, str::to_owned);
        for cell in ["event", &time] {
            self.cell(cell)?;
        }
        for text in origin(thread, sources) {
            self.text(&text)?;
        }
        for text in [event.name(), &level, "", ""] {
            self.text(text)?;
        }
        for index in 0..self.fields.len() {
            let found = plain::fields(event).find(|(name, _)| *name == self.fields[index]);
            match found {
                Some((_, value)) => self.value(value)?,
                None => self.cell("")?,
            }
        }
        self.end_row()
    }

    fn span(&mut self, _span: &Span<'_>, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        let [host, program, pid, tid, thread] = origin(loss.thread, sources);
        let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
        let (time, events, packets) = (loss.loss.to_ns.to_string(), number(loss.events), number(loss.packets));
        self.row(["loss", &time, &host, &program, &pid, &tid, &thread, "", "", &events, &packets])
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        let text = damage.to_string();
        self.row(["damage", "", "", "", "", "", "", &text, "", "", ""])
    }

    fn finish(&mut self, _summary: &Summary, _sources: &Sources) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }
}

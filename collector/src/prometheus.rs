//! Prometheus's text format, version 0.0.4, and its transport over HTTP ([`http`]).

pub mod http;

use std::borrow::Cow;
use std::fmt::{Display, Write};
use tracepoint_reader::text::escape_controls;

/// What a family of metrics is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Only grows, from 0 at a start. Its name ends in `_total`.
    Counter,
    /// Any number.
    Gauge,
    /// Has samples `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// Metrics as text.
///
/// ```
/// use tracepoint_collector::prometheus::{Kind, Metrics};
///
/// let mut metrics = Metrics::default();
/// let mut sent = metrics.family(Kind::Counter, "sent_total", "Messages that were sent.");
/// sent.sample("", &[("to", "\"b\"")], 7);
/// assert_eq!(
///     metrics.into_text(),
///     "# HELP sent_total Messages that were sent.\n# TYPE sent_total counter\nsent_total{to=\"\\\"b\\\"\"} 7\n"
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    text: String,
}

/// The samples of a metric.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'a str,
}

impl Metrics {
    /// Begins a metric. The format wants all samples of a metric together: a name may be used once. `name` consists of letters, digits and `_`.
    pub fn family<'a>(&'a mut self, kind: Kind, name: &'a str, help: &str) -> Family<'a> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, name }
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample. Names and values of labels may be any text, and are written as [`label_name`] and [`label_value`] have them. The format wants
    /// each name once in a sample, and one sample of the same labels.
    pub fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (index, (name, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(&label_name(name));
            self.text.push_str("=\"");
            for c in label_value(value).chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

/// The name of a label: all but letters, digits and `_` becomes `_`. Different names can become the same.
pub fn label_name(name: &str) -> String {
    let is_reserved = name.starts_with("__") || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let legal = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    if is_reserved { "label_" } else { "" }.chars().chain(legal).collect()
}

/// The value of a label as it reads: control characters are shown as `\u{1b}`, so that different texts can become the same.
pub fn label_value(text: &str) -> Cow<'_, str> {
    escape_controls(text, &['\n', '\t'])
}

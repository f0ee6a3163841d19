//! Prometheus text format, version 0.0.4, and its transport over HTTP ([`http`]).

pub mod http;

use std::borrow::Cow;
use std::fmt::{Display, Write};
use tracepoint_reader::text::escape_controls;

/// The type of a metric family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Only increases, from 0 at start. Its name ends in `_total`.
    Counter,
    /// Any number.
    Gauge,
    /// Has samples `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// Metrics in text form.
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
    /// Begins a metric. The format requires all samples of a metric to be together, so a name may be used once. `name` consists of letters, digits
    /// and `_`.
    pub fn family<'a>(&'a mut self, kind: Kind, name: &'a str, help: &str) -> Family<'a> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, name }
    }

    /// Returns the text.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Adds a sample. Names and values of labels may be any text, and are converted by [`label_name`] and [`label_value`]. The format requires each
    /// name to occur once per sample, and each set of labels once per metric.
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

/// Converts text to a label name: all characters except letters, digits and `_` become `_`. Different texts can result in the same name.
pub fn label_name(name: &str) -> String {
    let is_reserved = name.starts_with("__") || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let legal = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    if is_reserved { "label_" } else { "" }.chars().chain(legal).collect()
}

/// Converts text to a readable label value: control characters become `\u{1b}` and the like. Different texts can result in the same value.
pub fn label_value(text: &str) -> Cow<'_, str> {
    escape_controls(text, &['\n', '\t'])
}

//! Writes pictures as SVG. Their colours follow the viewer's dark or light preference.
//!
//! `plotters` is not used because it writes fixed colours into each element, which suits one background only, and has no axis with the scale of a
//! histogram's buckets.

use super::chart::value;
use super::number;
use std::fmt::Write;
use tracepoint_probes::snapshot::Bucket;

pub(super) const WIDTH: f64 = 860.0;
const STYLE: &str = "\
.back{fill:#fff}text{fill:#1f2328;font:12px system-ui,sans-serif}.title{font-size:16px;font-weight:600}.note{fill:#59636e}\
.grid{stroke:#d1d9e0}.axis{stroke:#59636e}.bar{fill:#0969da}.mark{stroke:#bc4c00;stroke-dasharray:4 3}.line{fill:none;stroke:#bc4c00;stroke-width:1.5}\
@media(prefers-color-scheme:dark){.back{fill:#0d1117}text{fill:#f0f6fc}.note{fill:#9198a1}.grid{stroke:#3d444d}.axis{stroke:#9198a1}\
.bar{fill:#4493f8}.mark,.line{stroke:#f0883e}}";

/// The alignment of a text relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that grows downwards.
#[derive(Default)]
pub(super) struct Picture {
    body: String,
}

impl Picture {
    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ =
            writeln!(self.body, r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#);
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = writeln!(self.body, r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#);
    }

    /// A rectangle given by its upper left corner and its size, with a tooltip.
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), opacity: f64, title: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect class="bar" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" fill-opacity="{opacity:.2}"><title>{}</title></rect>"#,
            escaped(title)
        );
    }

    pub(super) fn polyline(&mut self, points: &[(f64, f64)]) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(self.body, r#"<polyline class="line" points="{}"/>"#, points.join(" "));
    }

    pub(super) fn finish(self, title: &str, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}

/// Escapes text for XML: recorded values may contain anything. Characters that XML does not allow become U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            c if (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// An axis on which each bin has the same length: with histogram buckets, linear up to 64 and logarithmic above.
pub(super) struct Axis<'a> {
    pub(super) bins: &'a [Bucket],
    pub(super) is_duration: bool,
}

impl Axis<'_> {
    /// The position of a value, from 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        let index = self.bins.partition_point(|bin| bin.from <= value).saturating_sub(1);
        let Some(bin) = self.bins.get(index) else { return 0.0 };
        let within = ((value - bin.from) / (bin.to - bin.from)).clamp(0.0, 1.0);
        (number(index as u64) + within) / number(self.bins.len() as u64)
    }

    /// Positions and labels of ticks: both ends, then powers of ten, 5 and 2 times powers of ten, and bounds of bins, as long as they keep a distance
    /// of `gap`.
    pub(super) fn ticks(&self, gap: f64) -> Vec<(f64, String)> {
        let (Some(first), Some(last)) = (self.bins.first(), self.bins.last()) else { return Vec::new() };
        let decades = |factor: f64| (-20..20).map(move |exponent| factor * 10_f64.powi(exponent));
        let inside = |value: &f64| (first.from..=last.to).contains(value);
        let candidates = [first.from, last.to].into_iter().chain([1.0, 5.0, 2.0].into_iter().flat_map(decades));
        let candidates = candidates.chain(self.bins.iter().map(|bin| bin.from)).filter(inside);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        for tick in candidates.filter(|value| value.is_finite()) {
            let position = self.position(tick);
            if ticks.iter().all(|(other, _)| (other - position).abs() >= gap) {
                ticks.push((position, value(tick, self.is_duration)));
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_text_cannot_become_markup() {
        let mut picture = Picture::default();
        picture.text("note", (1.0, 2.0), Anchor::Start, "</text><script>\"&\u{1b}");
        let text = picture.finish("<>", 10.0);
        assert!(text.contains("&lt;/text&gt;&lt;script&gt;&quot;&amp;\u{fffd}</text>"), "{text}");
        assert!(text.contains("<title>&lt;&gt;</title>"), "{text}");
    }
}

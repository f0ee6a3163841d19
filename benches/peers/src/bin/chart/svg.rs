//! The chart: what an event adds, off, on and recorded, in a tight loop and isolated.
//!
//! Bars are logarithmic, for between a no-op and a breakpoint lie four powers of ten. The colours are of middling lightness and
//! there is no background, so that it reads on white as on black.

use std::fmt::Write;
use tracepoint_peers::report::{Report, Row};
use tracepoint_peers::variant::Mode;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const BAR: f64 = 9.0;
const GROUP: f64 = 2.0 * BAR + 8.0;
const TOP: f64 = 78.0;
const TITLE: f64 = 44.0;

/// Kernel, what the legend says, colour.
const SERIES: [(&str, &str, &str); 2] =
    [("tight", "in a tight loop", "#2f81f7"), ("tight-isolated", "isolated by fences", "#d18616")];

/// Renders a run.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::new();
    write(&mut text, report).expect("a String takes everything");
    text
}

fn write(svg: &mut String, report: &Report) -> std::fmt::Result {
    let panels = [
        ("Switched off", variants(report, Mode::Off)),
        ("Switched on, nothing kept", variants(report, Mode::On)),
        ("Recorded", variants(report, Mode::Recorded)),
    ];
    let height = TOP + panels.iter().map(|(_, variants)| TITLE + GROUP * variants.len() as f64 + 24.0).sum::<f64>();
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#808a94\">"
    )?;
    writeln!(svg, "<title>Nanoseconds that an event adds to a loop</title>")?;
    writeln!(
        svg,
        "<text x=\"8\" y=\"22\" font-size=\"16\">Nanoseconds that an event adds to a loop (logarithmic)</text>"
    )?;
    writeln!(svg, "<text x=\"8\" y=\"40\" font-size=\"10\">{}</text>", escape(&report.machine.to_string()))?;
    for (index, (_, label, colour)) in SERIES.iter().enumerate() {
        let x = 8.0 + 160.0 * index as f64;
        writeln!(svg, "<rect x=\"{x}\" y=\"52\" width=\"10\" height=\"10\" fill=\"{colour}\"/>")?;
        writeln!(svg, "<text x=\"{}\" y=\"61\">{label}</text>", x + 15.0)?;
    }
    writeln!(svg, "<text x=\"330\" y=\"61\">bar: median over the rounds; line: its 95 % interval</text>")?;
    let mut y = TOP;
    for (title, variants) in panels {
        if variants.is_empty() {
            continue;
        }
        let scale = Scale::of(&variants);
        writeln!(svg, "<text x=\"8\" y=\"{}\" font-size=\"14\">{title}</text>", y + 16.0)?;
        let bottom = y + TITLE + GROUP * variants.len() as f64;
        for decade in scale.decades() {
            let x = scale.x(decade);
            writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#808a94\" stroke-opacity=\"0.3\"/>",
                y + TITLE - 6.0
            )?;
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{decade}</text>", y + TITLE - 10.0)?;
        }
        y += TITLE;
        for (variant, rows) in variants {
            writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{variant}</text>", LEFT - 8.0, y + BAR + 4.0)?;
            for (index, row) in rows.iter().enumerate() {
                if let Some(row) = row {
                    bar(svg, &scale, row, SERIES[index].2, y + BAR * index as f64)?;
                }
            }
            y += GROUP;
        }
        y += 24.0;
    }
    writeln!(svg, "</svg>")
}

fn bar(svg: &mut String, scale: &Scale, row: &Row, colour: &str, y: f64) -> std::fmt::Result {
    let added = row.added_ns;
    let end = scale.x(added.median);
    let middle = y + BAR / 2.0;
    writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"><title>{}: {:.3} ns, {:.3} to \
         {:.3}</title></rect>",
        (end - LEFT).max(1.0),
        BAR - 1.0,
        row.variant,
        added.median,
        added.low,
        added.high
    )?;
    let (low, high) = (scale.x(added.low), scale.x(added.high));
    writeln!(
        svg,
        "<line x1=\"{low:.1}\" y1=\"{middle}\" x2=\"{high:.1}\" y2=\"{middle}\" stroke=\"#808a94\" stroke-width=\"1.5\"/>"
    )?;
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" font-size=\"9\">{:.2}</text>",
        high.max(end) + 4.0,
        y + BAR - 1.0,
        added.median
    )
}

/// The rows of each variant, in the order of [`SERIES`].
fn variants(report: &Report, mode: Mode) -> Vec<(&str, [Option<&Row>; SERIES.len()])> {
    let mut variants: Vec<(&str, [Option<&Row>; SERIES.len()])> = Vec::new();
    for row in report.rows.iter().filter(|row| row.mode == mode) {
        let Some(series) = SERIES.iter().position(|(kernel, ..)| *kernel == row.kernel) else { continue };
        let index = variants.iter().position(|(variant, _)| *variant == row.variant).unwrap_or_else(|| {
            variants.push((&row.variant, [None; SERIES.len()]));
            variants.len() - 1
        });
        variants[index].1[series] = Some(row);
    }
    variants
}

/// Nanoseconds to places on the page. Whatever is less than a hundredth is drawn as a hundredth: nothing that can be measured.
struct Scale {
    decades: i32,
}

impl Scale {
    const FIRST: i32 = -2;

    fn of(variants: &[(&str, [Option<&Row>; SERIES.len()])]) -> Self {
        let most = variants.iter().flat_map(|(_, rows)| rows.iter().flatten()).map(|row| row.added_ns.high);
        let most = most.fold(1.0, f64::max);
        Self { decades: most.log10().ceil() as i32 - Self::FIRST }
    }

    fn x(&self, ns: f64) -> f64 {
        let decades = ns.max(10f64.powi(Self::FIRST)).log10() - f64::from(Self::FIRST);
        LEFT + decades / f64::from(self.decades) * (WIDTH - LEFT - RIGHT)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (0..=self.decades).map(|decade| 10f64.powi(decade + Self::FIRST))
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

//! The chart: the cost that an event adds, off, on and recorded, in a tight loop and isolated.
//!
//! The axis is logarithmic, because a no-op and a breakpoint are four powers of ten apart. The colours are of medium lightness and there
//! is no background, so that the chart can be read on white and on black.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use tracepoint_peers::report::{Report, Row};
use tracepoint_peers::variant::Mode;

const WIDTH: u32 = 860;
const TOP: u32 = 70;
const LEFT: u32 = 190;
const RIGHT: u32 = 90;
/// The height of a bar. Axes are in pixels: a group is two bars and a gap.
const BAR: i32 = 8;
const GROUP: i32 = 26;
const PANEL_TOP: u32 = 44;
const PANEL_BOTTOM: u32 = 24;
/// Smaller values are drawn as this one, because they cannot be measured.
const MIN_NS: f64 = 0.01;

const GREY: RGBColor = RGBColor(0x80, 0x8a, 0x94);
/// Kernel, label in the legend, colour.
const SERIES: [(&str, &str, RGBColor); 2] = [
    ("tight", "in a tight loop", RGBColor(0x2f, 0x81, 0xf7)),
    ("tight-isolated", "isolated by fences", RGBColor(0xd1, 0x86, 0x16)),
];

type Drawn<'a> = Result<(), Box<dyn Error + 'a>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A variant, and its rows in the order of [`SERIES`].
type Variant<'r> = (&'r str, [Option<&'r Row>; SERIES.len()]);

/// Renders a run.
pub(crate) fn render(report: &Report) -> String {
    let mut svg = String::new();
    draw(&mut svg, report).expect("a String accepts all writes");
    svg
}

fn draw<'a>(svg: &'a mut String, report: &Report) -> Drawn<'a> {
    let panels = [
        ("Switched off", variants(report, Mode::Off)),
        ("Switched on, nothing kept", variants(report, Mode::On)),
        ("Recorded", variants(report, Mode::Recorded)),
    ];
    let panels: Vec<_> = panels.into_iter().filter(|(_, variants)| !variants.is_empty()).collect();
    let height = |variants: &[Variant<'_>]| PANEL_TOP + variants.len() as u32 * GROUP as u32 + PANEL_BOTTOM;
    let total = TOP + panels.iter().map(|(_, variants)| height(variants)).sum::<u32>();
    let root = SVGBackend::with_string(svg, (WIDTH, total)).into_drawing_area();
    let (header, mut rest) = root.split_vertically(TOP);
    legend(&header, report)?;
    for (title, variants) in &panels {
        let (area, below) = rest.split_vertically(height(variants));
        panel(&area, title, variants)?;
        rest = below;
    }
    root.present()?;
    Ok(())
}

/// Text of this size in pixels. The backend takes a size for an em box, and divides it by 1.24.
fn text(pixels: u32) -> TextStyle<'static> {
    ("system-ui, sans-serif", f64::from(pixels) * 1.24).into_font().color(&GREY)
}

fn legend<'a>(area: &Area<'a>, report: &Report) -> Drawn<'a> {
    let titles = "Nanoseconds that an event adds to a loop (logarithmic)";
    area.draw(&Text::new(titles, (8, 8), text(16)))?;
    area.draw(&Text::new(report.machine.to_string(), (8, 30), text(10)))?;
    for (x, (_, label, colour)) in (8..).step_by(160).zip(&SERIES) {
        area.draw(&Rectangle::new([(x, 52), (x + 10, 62)], colour.filled()))?;
        area.draw(&Text::new(*label, (x + 15, 50), text(12)))?;
    }
    let explanation = "bar: median over the rounds; line: its 95 % interval";
    area.draw(&Text::new(explanation, (330, 50), text(12)))?;
    Ok(())
}

fn panel<'a>(area: &Area<'a>, title: &str, variants: &[Variant<'_>]) -> Drawn<'a> {
    let rows = || variants.iter().flat_map(|(_, rows)| rows.iter().flatten());
    let most = rows().map(|row| row.added_ns.high).fold(1.0, f64::max).log10().ceil() as i32;
    let decades: Vec<f64> = (-2..=most).map(|decade| 10f64.powi(decade)).collect();
    let axis = (MIN_NS..10f64.powi(most)).log_scale().with_key_points(decades);
    // Each variant and the centre of its two bars.
    let centres: Vec<(i32, &Variant<'_>)> = (BAR..).step_by(GROUP as usize).zip(variants).collect();
    let bottom = centres.last().map_or(0, |(centre, _)| centre - BAR + GROUP);
    let mut chart = ChartBuilder::on(area)
        .margin_top(PANEL_TOP - 20)
        .margin_bottom(PANEL_BOTTOM)
        .margin_right(RIGHT)
        .set_label_area_size(LabelAreaPosition::Top, 20)
        .set_label_area_size(LabelAreaPosition::Left, LEFT)
        .build_cartesian_2d(axis, (bottom..0).with_key_points(centres.iter().map(|(centre, _)| *centre).collect()))?;
    area.draw(&Text::new(title.to_owned(), (8, 2), text(14)))?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .bold_line_style(GREY.mix(0.3))
        .light_line_style(TRANSPARENT)
        .axis_style(TRANSPARENT)
        .label_style(text(12))
        .x_label_formatter(&|ns| ns.to_string())
        .y_label_formatter(&|y| {
            centres.iter().find(|(centre, _)| centre == y).map_or_else(String::new, |(_, (name, _))| (*name).to_owned())
        })
        .draw()?;
    for (centre, (_, rows)) in &centres {
        for (top, (row, (.., colour))) in (centre - BAR..).step_by(BAR as usize + 1).zip(rows.iter().zip(&SERIES)) {
            let Some(row) = row else { continue };
            let [low, median, high] =
                [row.added_ns.low, row.added_ns.median, row.added_ns.high].map(|ns| ns.max(MIN_NS));
            let middle = top + BAR / 2;
            let label = text(9).pos(Pos::new(HPos::Left, VPos::Center));
            chart.plotting_area().draw(&Rectangle::new([(MIN_NS, top), (median, top + BAR)], colour.filled()))?;
            chart.plotting_area().draw(&PathElement::new([(low, middle), (high, middle)], GREY))?;
            let place = EmptyElement::at((high.max(median), middle));
            chart.plotting_area().draw(&(place + Text::new(format!("{:.2}", row.added_ns.median), (4, 0), label)))?;
        }
    }
    Ok(())
}

fn variants(report: &Report, mode: Mode) -> Vec<Variant<'_>> {
    let mut variants: Vec<Variant<'_>> = Vec::new();
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

//! The picture of `top` in the book: the view of the tests, as SVG. `TRACECTL_PICTURE=write cargo test -p tracectl picture` writes it.

use super::{Detail, KeyCode, distribution, drawn, model, press};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/top.svg");
const SIZE: (u16, u16) = (92, 9);
/// The size of a cell.
const CELL: (f64, f64) = (8.4, 18.0);
const STYLE: &str = "\
rect{fill:#f6f8fa}text{font:14px ui-monospace,monospace;fill:#1f2328;white-space:pre}.mark{fill:#1f2328}.on-mark{fill:#f6f8fa}\
.green{fill:#1a7f37}.cyan{fill:#0969da}.dim{fill:#59636e}.bold{font-weight:700}\
@media(prefers-color-scheme:dark){rect{fill:#0d1117}text{fill:#f0f6fc}.mark{fill:#f0f6fc}.on-mark{fill:#0d1117}.green{fill:#3fb950}.cyan{fill:#4493f8}\
.dim{fill:#9198a1}}";

fn class(cell: &Cell) -> &'static str {
    match (cell.modifier, cell.fg) {
        (modifier, _) if modifier.contains(Modifier::REVERSED) => "on-mark",
        (_, Color::Green) => "green",
        (_, Color::Cyan) => "cyan",
        (modifier, _) if modifier.contains(Modifier::DIM) => "dim",
        (modifier, _) if modifier.contains(Modifier::BOLD) => "bold",
        _ => "",
    }
}

/// Draws the cells of a screen below `top`; neighbours of one style are one text.
fn draw(svg: &mut String, buffer: &Buffer, top: f64) {
    for (row, cells) in buffer.content.chunks(usize::from(buffer.area.width)).enumerate() {
        let y = top + CELL.1 * f64::from(u16::try_from(row).unwrap());
        let mut x = 8.0;
        for run in cells.chunk_by(|a, b| class(a) == class(b)) {
            let text: String = run.iter().map(Cell::symbol).collect();
            let width = CELL.0 * f64::from(u16::try_from(run.len()).unwrap());
            let class = class(&run[0]);
            if class == "on-mark" {
                let _ = writeln!(
                    svg,
                    r#"<rect class="mark" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{}"/>"#,
                    CELL.1
                );
            }
            if !text.trim().is_empty() {
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                let _ = writeln!(
                    svg,
                    r#"<text class="{class}" x="{x:.1}" y="{:.1}" textLength="{width:.1}" lengthAdjust="spacingAndGlyphs">{text}</text>"#,
                    y + 13.5
                );
            }
            x += width;
        }
    }
}

#[test]
fn the_picture_of_the_book_shows_this_view() {
    let mut model = model();
    press(&mut model, KeyCode::Down);
    let list = drawn(&model, SIZE.0, SIZE.1, true);
    press(&mut model, KeyCode::Enter);
    press(&mut model, KeyCode::Right);
    press(&mut model, KeyCode::Right);
    let events = (1..4)
        .map(|n| format!("16:24:31.82159{n}164 shop[4242/4242] shop:answered id={n} path=\"/\" size={}", n * 217));
    model.update_detail(Detail { values: distribution(), last: events.collect(), last_title: "last events" });
    let detail = drawn(&model, SIZE.0, 36, true);
    let height = CELL.1 * f64::from(SIZE.1 + 36) + 32.0;
    let width = CELL.0 * f64::from(SIZE.0) + 16.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>tracectl top</title>\n<style>{STYLE}</style>\n<rect width=\"{width}\" height=\"{height}\"/>\n"
    );
    draw(&mut svg, &list, 8.0);
    draw(&mut svg, &detail, 24.0 + CELL.1 * f64::from(SIZE.1));
    svg.push_str("</svg>\n");
    if std::env::var_os("TRACECTL_PICTURE").is_some() {
        std::fs::write(FILE, &svg).unwrap();
    }
    let is_same = std::fs::read_to_string(FILE).unwrap() == svg;
    assert!(is_same, "docs/top.svg is another view: TRACECTL_PICTURE=write cargo test -p tracectl picture");
}

//! Draws the model.

use super::model::{Inspection, Model, Order};
use super::source::{EventRow, Values};
use crate::output::in_line;
use crate::statistics::{PERCENTILES, histogram_lines, percentile};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};

/// Number of processes with a line of their own.
const PROCESSES: u16 = 5;
/// Bar characters of a sparkline by height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Styles of the parts. Without colours they differ only in weight.
#[derive(Clone, Copy)]
pub(super) struct Theme {
    has_color: bool,
}

impl Theme {
    pub(super) const fn new(has_color: bool) -> Self {
        Self { has_color }
    }

    fn color(self, color: Color) -> Style {
        if self.has_color { Style::new().fg(color) } else { Style::new() }
    }

    fn heading() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn faint() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, theme: Theme) {
    let overview = &model.overview;
    let processes = u16::try_from(overview.processes.len()).unwrap_or(u16::MAX).min(PROCESSES);
    let heights = [Constraint::Length(1), Constraint::Length(processes), Constraint::Min(3), Constraint::Length(1)];
    let [heading, process_area, main, footer] = frame.area().layout(&Layout::vertical(heights));
    let state = if model.is_paused { "  paused" } else { "" };
    let text = format!("{}{state}", shown(&overview.heading));
    frame.render_widget(Line::styled(text, Theme::heading()), heading);
    draw_processes(frame, process_area, model);
    match &model.inspected {
        Some(inspected) => draw_detail(frame, main, model, inspected, theme),
        None => draw_events(frame, main, model, theme),
    }
    let keys = if model.inspected.is_some() {
        "Esc back  ←→ field  Space on/off  p pause  q quit"
    } else {
        "↑↓ select  Enter fields  Space on/off  s order  p pause  q quit"
    };
    let line = match model.message.as_deref().or(overview.note.as_deref()) {
        Some(message) => Line::styled(shown(message), theme.color(Color::Yellow)),
        None => Line::styled(keys, Theme::faint()),
    };
    frame.render_widget(line, footer);
}

fn draw_processes(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let processes = &model.overview.processes;
    let room = usize::from(area.height);
    let line = |(index, process): (usize, &super::source::ProcessRow)| {
        if index + 1 == room && processes.len() > room {
            return Line::styled(format!("  and {} others", processes.len() - index), Theme::faint());
        }
        let ended = if process.is_alive { "" } else { "  ended" };
        let style = if process.is_alive { Style::new() } else { Theme::faint() };
        let text = format!("  {}  {}/s{ended}", shown(&process.name), rate(process.per_second));
        Line::styled(text, style)
    };
    let lines: Vec<_> = processes.iter().enumerate().take(room).map(line).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let mark = |order, title: &str| {
        if model.order == order { format!("{title}▼") } else { title.to_owned() }
    };
    let titles = [
        String::new(),
        mark(Order::Name, "EVENT"),
        mark(Order::Rate, "PER SECOND"),
        mark(Order::Count, "COUNT"),
        "OVER TIME".to_owned(),
    ];
    let right = |text: String| Cell::from(Line::from(text).right_aligned());
    let [on, name, per_second, count, over_time] = titles;
    let heading = Row::new([Cell::from(on), Cell::from(name), right(per_second), right(count), Cell::from(over_time)]);
    let names = model.overview.events.iter().map(|row| row.name.chars().count());
    let longest = u16::try_from(names.max().unwrap_or(0).clamp(5, 48)).unwrap_or(48) + 1;
    let widths = [
        Constraint::Length(3),
        Constraint::Length(longest),
        Constraint::Length(12),
        Constraint::Length(14),
        Constraint::Min(8),
    ];
    let spark = usize::from(area.width.saturating_sub(3 + longest + 12 + 14 + 6));
    let row = |row: &EventRow| {
        let (state, style) = if row.is_on { ("on", theme.color(Color::Green)) } else { ("off", Theme::faint()) };
        let line = Line::styled(sparkline(&row.history, spark), theme.color(Color::Cyan));
        Row::new([
            Cell::from(Span::styled(state, style)),
            Cell::from(shown(&row.name)),
            right(rate(row.per_second)),
            right(row.count.to_string()),
            Cell::from(line),
        ])
    };
    let rows = model.overview.events.iter().map(row);
    let table = Table::new(rows, widths).header(heading.style(Theme::heading())).row_highlight_style(Theme::selected());
    let selected = (!model.overview.events.is_empty()).then(|| model.selected());
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
}

fn draw_detail(frame: &mut Frame<'_>, area: Rect, model: &Model, inspected: &Inspection, theme: Theme) {
    let row = model.inspected_row();
    let numbers = row.map_or_else(
        || "  gone".to_owned(),
        |row| format!("  {}/s, {} in all{}", rate(row.per_second), row.count, if row.is_on { "" } else { ", off" }),
    );
    let mut fields: Vec<Span<'_>> = vec![Span::raw("fields:")];
    for (index, field) in row.iter().flat_map(|row| &row.fields).enumerate() {
        let style = if index == inspected.field { Theme::selected() } else { Style::new() };
        fields.extend([Span::raw(" "), Span::styled(shown(field), style)]);
    }
    let mut values = Vec::new();
    match &inspected.detail.values {
        Values::None => values.push(Line::styled("no values yet", Theme::faint())),
        Values::Distribution { all, is_duration } => {
            let at = |percent| percentile(all, percent, *is_duration).unwrap_or_else(|| "-".to_owned());
            let percentiles = PERCENTILES.map(|percent| format!("p{percent} {}", at(percent)));
            let (count, percentiles) = (all.count(), percentiles.join(", "));
            values.push(Line::raw(format!("count {count}, {percentiles}, max {}", at(100.0))));
            let lines = histogram_lines(all, *is_duration).into_iter();
            values.extend(lines.map(|line| Line::styled(line, theme.color(Color::Cyan))));
        }
        Values::Frequent(frequent) => values.extend(frequent.iter().map(|(text, count, error)| {
            let error = if *error > 0 { format!(" (at most {error} fewer)") } else { String::new() };
            Line::raw(format!("{count:>12}  {}{error}", shown(text)))
        })),
    }
    let last = inspected.detail.last.iter().map(|line| Line::raw(shown(line)));
    let last_height =
        u16::try_from(inspected.detail.last.len()).unwrap_or(u16::MAX).saturating_add(1).min(area.height / 3);
    let heights = [Constraint::Length(2), Constraint::Min(3), Constraint::Length(last_height)];
    let [top, middle, bottom] = area.layout(&Layout::vertical(heights));
    let title = Line::from(vec![Span::styled(shown(&inspected.event), Theme::heading()), Span::raw(numbers)]);
    frame.render_widget(Paragraph::new(vec![title, Line::from(fields)]), top);
    frame.render_widget(Paragraph::new(values).block(Block::new()), middle);
    let room = usize::from(last_height.saturating_sub(1));
    let skipped = inspected.detail.last.len().saturating_sub(room);
    let heading = Line::styled(inspected.detail.last_title, Theme::heading());
    frame.render_widget(Paragraph::new(std::iter::once(heading).chain(last.skip(skipped)).collect::<Vec<_>>()), bottom);
}

/// Text from a traced process, escaped so that it cannot control the terminal.
fn shown(text: &str) -> String {
    in_line(text).replace('\t', " ")
}

/// A rate with three to five digits.
fn rate(per_second: f64) -> String {
    if per_second == 0.0 {
        "0".to_owned()
    } else if per_second < 100.0 {
        format!("{per_second:.1}")
    } else if per_second < 99_999.5 {
        format!("{per_second:.0}")
    } else if per_second < 99_999_500.0 {
        format!("{:.0}k", per_second / 1e3)
    } else {
        format!("{:.0}M", per_second / 1e6)
    }
}

/// The newest slices that fit, scaled to the largest of them.
fn sparkline(history: &[u64], width: usize) -> String {
    let newest = &history[history.len().saturating_sub(width)..];
    let most = newest.iter().copied().max().unwrap_or(0);
    let bar = |count: &u64| match count.saturating_mul(8).div_ceil(most.max(1)) {
        0 => ' ',
        eighths => BARS[usize::try_from(eighths - 1).unwrap_or(7).min(7)],
    };
    newest.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::{rate, sparkline};

    #[test]
    fn rates_are_short() {
        for (number, text) in
            [(0.0, "0"), (0.25, "0.2"), (99.94, "99.9"), (1234.4, "1234"), (99_999.5, "100k"), (2.5e9, "2500M")]
        {
            assert_eq!(rate(number), text);
        }
    }

    #[test]
    fn a_sparkline_has_its_newest_part() {
        assert_eq!(sparkline(&[9, 9, 0, 1, 4, 8], 4), " ▁▄█");
        assert_eq!(sparkline(&[0, 0], 5), "  ");
        assert_eq!(sparkline(&[u64::MAX], 1), "▁");
    }
}

//! The model and its view, without a terminal.

mod picture;

use super::model::{Model, Order, Request};
use super::source::{Detail, EventRow, Focus, HISTORY, Overview, ProcessRow, Values};
use super::view::{Theme, draw};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{Measure, Snapshot, StatisticSpec};

fn event(name: &str, count: u32, is_on: bool, fields: &[&str]) -> EventRow {
    let wave = |slice: usize| u64::from(count) * (slice as u64 % 13 + 3) / 900;
    EventRow {
        name: name.to_owned(),
        is_on,
        count: count.into(),
        per_second: f64::from(count) / 8.0,
        history: (0..HISTORY).map(wave).collect(),
        fields: fields.iter().map(|&field| field.to_owned()).collect(),
    }
}

fn overview() -> Overview {
    let process = |name: &str, count: u32, is_alive| ProcessRow {
        name: name.to_owned(),
        per_second: f64::from(count) / 8.0,
        is_alive,
    };
    Overview {
        heading: "2 processes, 3 tracepoints".to_owned(),
        processes: vec![process("4243 worker", 900, false), process("4242 shop", 51_234, true)],
        events: vec![
            event("shop:idle", 12, false, &[]),
            event("shop:asked", 26_000, true, &["id"]),
            event("shop:answered", 25_234, true, &["id", "path", "size"]),
        ],
        note: None,
    }
}

fn model() -> Model {
    let mut model = Model::default();
    model.update(overview());
    model
}

fn press(model: &mut Model, code: KeyCode) -> Request {
    model.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn drawn(model: &Model, width: u16, height: u16, has_color: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, Theme::new(has_color))).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
    };
    buffer.content.chunks(width).map(line).collect()
}

fn distribution() -> Values {
    let spec = StatisticSpec::new(Measure::Histogram { field: "size".to_owned() });
    let statistic = tracepoint_probes::Statistic::new(spec.clone(), false).unwrap();
    let fields = [("size", tracepoint_probes::FieldKind::Integer)];
    let columns = spec.columns(spec.roles("shop:answered")[0], "shop:answered", &fields).unwrap();
    for size in (0..4000_u64).map(|n| 200 + n * n % 1777 + n % 7 * 300) {
        let value = tracepoint_ring::field::Value::Unsigned(size);
        statistic.record(&columns, tracepoint_probes::Moment::recorded(0, 0), |_| Some(value));
    }
    let Snapshot { results: Results::Histogram(rows), .. } = statistic.snapshot() else { panic!("a histogram") };
    Values::Distribution { all: rows.all.unwrap(), is_duration: false }
}

#[test]
fn events_are_listed_by_rate_count_or_name() {
    let mut model = model();
    let names = |model: &Model| model.overview.events.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&model), ["shop:asked", "shop:answered", "shop:idle"]);
    assert_eq!(press(&mut model, KeyCode::Char('s')), Request::Stay);
    assert_eq!(model.order, Order::Count);
    press(&mut model, KeyCode::Char('s'));
    assert_eq!(names(&model), ["shop:answered", "shop:asked", "shop:idle"]);
    let lines = lines(&drawn(&model, 90, 12, false));
    assert_eq!(lines[0], "2 processes, 3 tracepoints");
    assert_eq!(lines[1..3], ["  4242 shop  6404/s", "  4243 worker  112/s  ended"]);
    assert!(lines[3].starts_with("    EVENT▼") && lines[3].ends_with("OVER TIME"), "{lines:?}");
    assert!(
        lines[4].starts_with("on  shop:answered") && lines[4].contains("        3154          25234 "),
        "{lines:?}"
    );
    assert!(lines[6].starts_with("off shop:idle"), "{lines:?}");
    assert!(lines[11].starts_with("↑↓ select"), "{lines:?}");
}

#[test]
fn the_selection_follows_its_event() {
    let mut model = model();
    press(&mut model, KeyCode::Down);
    assert_eq!(model.selected(), 1);
    let mut changed = overview();
    changed.events[2].per_second = 1e9;
    model.update(changed);
    assert_eq!((model.selected(), model.overview.events[0].name.as_str()), (0, "shop:answered"));
    for (key, selected) in
        [(KeyCode::End, 2), (KeyCode::Down, 2), (KeyCode::PageUp, 0), (KeyCode::Char('j'), 1), (KeyCode::Home, 0)]
    {
        press(&mut model, key);
        assert_eq!(model.selected(), selected, "{key:?}");
    }
    model.update(Overview::default());
    assert_eq!((model.selected(), press(&mut model, KeyCode::Enter)), (0, Request::Stay));
    drawn(&model, 80, 10, true);
}

#[test]
fn space_switches_the_selected_event() {
    let mut model = model();
    let switch = |event: &str, on| Request::Switch { event: event.to_owned(), on };
    assert_eq!(press(&mut model, KeyCode::Char(' ')), switch("shop:asked", false));
    press(&mut model, KeyCode::End);
    assert_eq!(press(&mut model, KeyCode::Char(' ')), switch("shop:idle", true));
    model.fail("it did not\u{1b}[2J".to_owned());
    let shown = lines(&drawn(&model, 60, 8, true));
    assert_eq!(shown[7], "it did not\\u{1b}[2J");
    press(&mut model, KeyCode::Up);
    assert_eq!(model.message, None);
}

#[test]
fn fields_of_an_event_are_looked_into() {
    let mut model = model();
    press(&mut model, KeyCode::Down);
    let focus = |field: &str| Focus { event: "shop:answered".to_owned(), field: Some(field.to_owned()) };
    assert_eq!(press(&mut model, KeyCode::Enter), Request::Detail(focus("id")));
    assert_eq!(press(&mut model, KeyCode::Left), Request::Stay);
    press(&mut model, KeyCode::Right);
    assert_eq!(press(&mut model, KeyCode::Tab), Request::Detail(focus("size")));
    assert_eq!(press(&mut model, KeyCode::Tab), Request::Stay);
    model.update_detail(Detail {
        values: distribution(),
        last: vec!["first".to_owned(), "last\u{7}".to_owned()],
        last_title: "last events",
    });
    let shown = lines(&drawn(&model, 100, 40, true));
    assert_eq!(shown[3], "shop:answered  3154/s, 25234 in all");
    assert_eq!(shown[4], "fields: id path size");
    assert!(
        shown[5].starts_with("count 4000, p50 ") && shown[6..30].iter().any(|line| line.ends_with('█')),
        "{shown:?}"
    );
    assert_eq!(shown[36..39], ["last events", "first", "last\\u{7}"]);
    // The same numbers, as nanoseconds.
    let Values::Distribution { all, .. } = distribution() else { panic!("a distribution") };
    let values = Values::Distribution { all, is_duration: true };
    model.update_detail(Detail { values, ..Detail::default() });
    let shown = lines(&drawn(&model, 100, 40, true));
    assert!(shown[5].starts_with("count 4000, p50 1.") && shown[5].matches("us").count() == 5, "{shown:?}");
    let values = Values::Frequent(vec![("/cart".to_owned(), 7, 0), ("/".to_owned(), 3, 1)]);
    model.update_detail(Detail { values, ..Detail::default() });
    let shown = lines(&drawn(&model, 100, 20, true));
    assert_eq!(shown[5..7], ["           7  /cart", "           3  / (at most 1 fewer)"]);
    // Events come and go.
    model.update(Overview::default());
    drawn(&model, 100, 20, true);
    assert_eq!(press(&mut model, KeyCode::Esc), Request::Leave);
    assert!(model.inspected.is_none());
}

#[test]
fn a_paused_display_stays() {
    let mut model = model();
    press(&mut model, KeyCode::Char('p'));
    model.update(Overview::default());
    assert_eq!(model.overview.events.len(), 3);
    assert!(lines(&drawn(&model, 60, 10, true))[0].ends_with("paused"));
    press(&mut model, KeyCode::Char('p'));
    model.update(Overview::default());
    assert_eq!(model.overview.events.len(), 0);
    assert_eq!(press(&mut model, KeyCode::Char('q')), Request::End);
    assert_eq!(model.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Request::End);
}

#[test]
fn any_size_is_drawn_and_colours_can_be_off() {
    let mut model = model();
    for step in 0..2 {
        for (width, height) in [(1, 1), (3, 2), (10, 5), (40, 3), (300, 100)] {
            drawn(&model, width, height, true);
        }
        let cells = |has_color| drawn(&model, 80, 24, has_color).content;
        assert!(cells(true).iter().any(|cell| cell.fg != Color::Reset), "{step}");
        assert!(cells(false).iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset), "{step}");
        press(&mut model, KeyCode::Enter);
        model.update_detail(Detail {
            values: distribution(),
            last: vec![String::new(); 50],
            last_title: "last events",
        });
    }
}

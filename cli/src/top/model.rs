//! The state of the display, and its reaction to keys.

use super::source::{Detail, EventRow, Focus, Overview};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Number of rows that a page key moves.
const PAGE: usize = 10;

/// The order of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Rate,
    Count,
    Name,
}

/// A request to the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    End,
    /// Nothing.
    Stay,
    /// Show the values of a field of an event.
    Detail(Focus),
    /// Leave the detail view.
    Leave,
    Switch {
        event: String,
        on: bool,
    },
}

/// The inspected event.
#[derive(Debug, Default)]
pub(super) struct Inspection {
    pub(super) event: String,
    /// The index of a field.
    pub(super) field: usize,
    pub(super) detail: Detail,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) overview: Overview,
    pub(super) order: Order,
    /// The name of the selected event; it stays selected when the order changes.
    selected: Option<String>,
    pub(super) inspected: Option<Inspection>,
    pub(super) is_paused: bool,
    /// The most recent error.
    pub(super) message: Option<String>,
}

impl Model {
    /// Shows a new overview, unless the display is paused.
    pub(super) fn update(&mut self, overview: Overview) {
        if !self.is_paused {
            self.overview = overview;
            self.sort();
        }
    }

    pub(super) fn update_detail(&mut self, detail: Detail) {
        if let Some(inspected) = self.inspected.as_mut().filter(|_| !self.is_paused) {
            inspected.detail = detail;
        }
    }

    pub(super) fn fail(&mut self, message: String) {
        self.message = Some(message);
    }

    fn sort(&mut self) {
        let order = self.order;
        self.overview.events.sort_by(|a, b| {
            let by_name = a.name.cmp(&b.name);
            match order {
                Order::Rate => b.per_second.total_cmp(&a.per_second).then(b.count.cmp(&a.count)).then(by_name),
                Order::Count => b.count.cmp(&a.count).then(by_name),
                Order::Name => by_name,
            }
        });
        self.overview.processes.sort_by(|a, b| b.per_second.total_cmp(&a.per_second).then_with(|| a.name.cmp(&b.name)));
    }

    /// The index of the selected event, or 0 if it no longer exists.
    pub(super) fn selected(&self) -> usize {
        let is_selected = |row: &EventRow| Some(&row.name) == self.selected.as_ref();
        self.overview.events.iter().position(is_selected).unwrap_or(0)
    }

    /// The inspected event, if it still exists.
    pub(super) fn inspected_row(&self) -> Option<&EventRow> {
        let inspected = self.inspected.as_ref()?;
        self.overview.events.iter().find(|row| row.name == inspected.event)
    }

    /// The field whose values are shown.
    pub(super) fn focus(&self) -> Option<Focus> {
        let inspected = self.inspected.as_ref()?;
        let field = self.inspected_row().and_then(|row| row.fields.get(inspected.field).cloned());
        Some(Focus { event: inspected.event.clone(), field })
    }

    /// Does what a key asks for.
    pub(super) fn key(&mut self, key: KeyEvent) -> Request {
        self.message = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => Request::End,
            _ if is_control => Request::Stay,
            KeyCode::Char('q') => Request::End,
            KeyCode::Char('p') => {
                self.is_paused = !self.is_paused;
                Request::Stay
            }
            KeyCode::Char(' ') => self.switch(),
            _ if self.inspected.is_some() => self.key_in_detail(key.code),
            code => self.key_in_list(code),
        }
    }

    fn key_in_list(&mut self, code: KeyCode) -> Request {
        let (selected, last) = (self.selected(), self.overview.events.len().saturating_sub(1));
        let target = match code {
            KeyCode::Up | KeyCode::Char('k') => selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => selected + 1,
            KeyCode::PageUp => selected.saturating_sub(PAGE),
            KeyCode::PageDown => selected + PAGE,
            KeyCode::Home => 0,
            KeyCode::End => last,
            KeyCode::Char('s') => {
                self.order = match self.order {
                    Order::Rate => Order::Count,
                    Order::Count => Order::Name,
                    Order::Name => Order::Rate,
                };
                self.sort();
                return Request::Stay;
            }
            KeyCode::Enter => {
                let Some(row) = self.overview.events.get(selected) else { return Request::Stay };
                self.inspected = Some(Inspection { event: row.name.clone(), ..Inspection::default() });
                return self.focus().map_or(Request::Stay, Request::Detail);
            }
            _ => return Request::Stay,
        };
        self.selected = self.overview.events.get(target.min(last)).map(|row| row.name.clone());
        Request::Stay
    }

    fn key_in_detail(&mut self, code: KeyCode) -> Request {
        let fields = self.inspected_row().map_or(0, |row| row.fields.len());
        let Some(inspected) = &mut self.inspected else { return Request::Stay };
        let field = match code {
            KeyCode::Esc | KeyCode::Backspace => {
                self.inspected = None;
                return Request::Leave;
            }
            KeyCode::Left | KeyCode::Char('h') => inspected.field.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('l') | KeyCode::Tab => inspected.field + 1,
            _ => return Request::Stay,
        };
        let field = field.min(fields.saturating_sub(1));
        if field == inspected.field {
            return Request::Stay;
        }
        (inspected.field, inspected.detail) = (field, Detail::default());
        self.focus().map_or(Request::Stay, Request::Detail)
    }

    fn switch(&self) -> Request {
        let row =
            if self.inspected.is_some() { self.inspected_row() } else { self.overview.events.get(self.selected()) };
        row.map_or(Request::Stay, |row| Request::Switch { event: row.name.clone(), on: !row.is_on })
    }
}

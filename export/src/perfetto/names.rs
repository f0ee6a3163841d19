//! Interned names: each name is written once, with a number that later packets refer to.

use std::collections::HashMap;

use tracepoint_reader::Value;

use super::proto::{AnnotationValue, DebugAnnotation, InternedData, InternedString};
use crate::plain::Plain;

/// Names of one kind.
#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<String, u64>,
    new: Vec<InternedString>,
}

impl Table {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let iid = self.numbers.len() as u64 + 1;
        self.numbers.insert(name.to_owned(), iid);
        self.new.push(InternedString { iid, name: name.to_owned() });
        iid
    }
}

/// All names so far. They come from the metadata, which bounds their number.
#[derive(Debug, Default)]
pub(super) struct Names {
    categories: Table,
    events: Table,
    annotations: Table,
}

impl Names {
    pub(super) fn category(&mut self, name: &str) -> u64 {
        self.categories.number(name)
    }

    pub(super) fn event(&mut self, name: &str) -> u64 {
        self.events.number(name)
    }

    /// Takes the new names, to be written with the next packet.
    pub(super) fn take_new(&mut self) -> Option<InternedData> {
        let data = InternedData {
            event_categories: std::mem::take(&mut self.categories.new),
            event_names: std::mem::take(&mut self.events.new),
            debug_annotation_names: std::mem::take(&mut self.annotations.new),
        };
        (data != InternedData::default()).then_some(data)
    }

    /// An annotation with this name and value.
    pub(super) fn annotation(&mut self, name: &str, value: AnnotationValue) -> DebugAnnotation {
        let name_iid = Some(self.annotations.number(name));
        DebugAnnotation { name_iid, value: Some(value), ..DebugAnnotation::default() }
    }

    /// The annotation of a field.
    pub(super) fn field(&mut self, name: &str, value: &Value) -> DebugAnnotation {
        DebugAnnotation { name_iid: Some(self.annotations.number(name)), ..self.value(value) }
    }

    fn value(&mut self, value: &Value) -> DebugAnnotation {
        let mut annotation = DebugAnnotation::default();
        annotation.value = Some(match Plain::from(value) {
            Plain::None => AnnotationValue::Text("none".to_owned()),
            Plain::Bool(truth) => AnnotationValue::Bool(truth),
            Plain::Unsigned(number) => AnnotationValue::Unsigned(number),
            Plain::Signed(number) => AnnotationValue::Signed(number),
            Plain::Float(number) => AnnotationValue::Float(number),
            Plain::Text(text) => AnnotationValue::Text(text.into_owned()),
            Plain::Array(values) => {
                annotation.array_values = values.iter().map(|value| self.value(value)).collect();
                return annotation;
            }
            Plain::Struct(members) => {
                annotation.dict_entries = members.iter().map(|(name, value)| self.field(name, value)).collect();
                return annotation;
            }
            Plain::Variant(option, value) => {
                annotation.dict_entries = vec![self.field(option, value)];
                return annotation;
            }
        });
        annotation
    }
}

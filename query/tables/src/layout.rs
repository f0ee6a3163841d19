//! The columns of an event: the common ones, and one for each field.

use std::fmt::Write;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use tracepoint_reader::metadata::types::StructType;
use tracepoint_reader::metadata::{EventClass, StreamClass};
use tracepoint_reader::{Event, EventView, StructValue, Value};

use crate::column::{Column, Scalar};
use crate::column_type::ColumnType;
use crate::names::unique;

/// The partition keys, which are reserved: columns cannot have these names.
const KEYS: [&str; 3] = ["day", "session", "event"];
/// Context members that become common columns: the origin of an event.
const ORIGIN: [&str; 5] = ["vpid", "vtid", "pid", "tid", "procname"];

/// The type of times: nanoseconds since the epoch, UTC.
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}

/// A column that all events share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Common {
    Ts,
    Host,
    Pid,
    Tid,
    Thread,
    Stream,
    Seq,
    LostBefore,
}

impl Common {
    const ALL: [Self; 8] =
        [Self::Ts, Self::Host, Self::Pid, Self::Tid, Self::Thread, Self::Stream, Self::Seq, Self::LostBefore];

    fn field(self) -> Field {
        let (name, ty) = match self {
            Self::Ts => ("ts", time_type()),
            Self::Host => ("host", DataType::Utf8),
            Self::Pid => ("pid", DataType::UInt32),
            Self::Tid => ("tid", DataType::UInt32),
            Self::Thread => ("thread", DataType::Utf8),
            Self::Stream => ("stream", DataType::Utf8),
            Self::Seq => ("seq", DataType::UInt64),
            Self::LostBefore => ("lost_before", DataType::UInt64),
        };
        Field::new(name, ty, true)
    }
}

/// A part of an event.
#[derive(Clone, Copy, Debug)]
enum Part {
    Fields,
    Context,
    StreamContext,
}

impl Part {
    fn of(self, event: &Event) -> Option<&StructValue> {
        match self {
            Self::Fields => event.fields.as_ref(),
            Self::Context => event.context.as_ref(),
            Self::StreamContext => event.stream_context.as_ref(),
        }
    }
}

/// A column of a field.
#[derive(Clone, Debug)]
struct FieldColumn {
    ty: ColumnType,
    /// The index of the field in an [`EventView`].
    number: usize,
    /// The location of the field in a decoded event.
    place: (Part, usize),
}

/// The columns of one kind of event, or a subset of them.
#[derive(Clone, Debug)]
pub struct Layout {
    schema: SchemaRef,
    /// The common columns, which come first.
    pub(crate) common: Vec<Common>,
    fields: Vec<FieldColumn>,
    /// The indices of the context members with the event's process and thread: `pid`, `tid` and `thread`.
    origin: [Option<usize>; 3],
}

/// The process and thread of an event according to its contexts.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventOrigin<'a> {
    pub(crate) pid: Option<u64>,
    pub(crate) tid: Option<u64>,
    pub(crate) thread: Option<&'a [u8]>,
}

impl Layout {
    /// All columns of these events.
    pub fn of(class: &EventClass, stream: &StreamClass) -> Self {
        let Self { schema: common, .. } = Self::common();
        let mut taken: Vec<_> = common.fields().iter().map(|field| field.name().clone()).collect();
        let reserved = [KEYS.map(str::to_owned).to_vec(), taken.clone()].concat();
        let mut schema = common.fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
        let (mut fields, mut origin, mut before) = (Vec::new(), [[None; 2]; 3], 0);
        let parts: [(Part, Option<&StructType>); 3] = [
            (Part::Fields, class.fields.as_deref()),
            (Part::Context, class.context.as_deref()),
            (Part::StreamContext, stream.event_context.as_deref()),
        ];
        for (part, ty) in parts {
            let members = ty.map_or(&[][..], |ty| &ty.fields);
            for (index, member) in members.iter().enumerate() {
                let (name, number) = (member.name(), before + index);
                if ty.is_some_and(|ty| ty.is_length(index)) {
                    continue;
                }
                if !matches!(part, Part::Fields) && ORIGIN.contains(&name) {
                    let (column, rank) = match name {
                        "vpid" => (0, 0),
                        "pid" => (0, 1),
                        "vtid" => (1, 0),
                        "tid" => (1, 1),
                        _ => (2, 0),
                    };
                    origin[column][rank] = origin[column][rank].or(Some(number));
                    continue;
                }
                let is_reserved = reserved.iter().any(|other| other.eq_ignore_ascii_case(name));
                let name = if is_reserved { format!("field.{name}") } else { name.to_owned() };
                let ty = ColumnType::of(&member.ty);
                schema.push(Field::new(unique(&name, &mut taken), ty.data_type(), true));
                fields.push(FieldColumn { ty, number, place: (part, index) });
            }
            before += members.len();
        }
        let origin = origin.map(|[first, second]| first.or(second));
        Self { schema: Arc::new(Schema::new(schema)), common: Common::ALL.to_vec(), fields, origin }
    }

    /// The columns that all events share.
    pub fn common() -> Self {
        let schema = Schema::new(Common::ALL.map(Common::field).to_vec());
        Self { schema: Arc::new(schema), common: Common::ALL.to_vec(), fields: Vec::new(), origin: [None; 3] }
    }

    /// The subset of columns accepted by `is_wanted`, in the same order. Values of other columns are not decoded.
    #[must_use]
    pub fn select(&self, is_wanted: impl Fn(&str) -> bool) -> Self {
        let wanted: Vec<_> = self.schema.fields().iter().map(|field| is_wanted(field.name())).collect();
        let (of_common, of_fields) = wanted.split_at(self.common.len());
        let fields = self.schema.fields().iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        Self {
            schema: Arc::new(Schema::new(fields.map(|(field, _)| Arc::clone(field)).collect::<Vec<_>>())),
            common: self.common.iter().zip(of_common).filter(|(_, wanted)| **wanted).map(|(one, _)| *one).collect(),
            fields: self
                .fields
                .iter()
                .zip(of_fields)
                .filter(|(_, wanted)| **wanted)
                .map(|(one, _)| one.clone())
                .collect(),
            origin: self.origin,
        }
    }

    /// The names and types of its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns as text. Equal columns have equal text.
    pub fn description(&self) -> String {
        let fields = self.schema.fields().iter();
        fields.fold(String::new(), |mut text, field| {
            let _ = writeln!(text, "{:?} {}", field.name(), field.data_type());
            text
        })
    }

    /// Creates empty columns for the fields.
    pub(crate) fn columns(&self) -> Vec<Column> {
        self.fields.iter().map(|field| Column::new(&field.ty)).collect()
    }

    /// Appends an event's fields to the columns, and returns their approximate size in memory in bytes.
    pub(crate) fn append(&self, event: &EventView<'_>, columns: &mut [Column]) -> usize {
        let columns = self.fields.iter().zip(columns);
        match event.decoded() {
            None => columns.map(|(field, column)| column.scalar(Scalar::of_view(event, field.number))).sum(),
            Some(event) => {
                let value = |(part, index): (Part, usize)| -> Option<&Value> { part.of(event)?.at(index) };
                columns.map(|(field, column)| column.value(value(field.place))).sum()
            }
        }
    }

    /// Returns whether the events' contexts contain their process or thread.
    pub fn has_origin(&self) -> bool {
        self.origin.iter().any(Option::is_some)
    }

    /// The process and thread of an event according to its contexts.
    pub fn origin<'a>(&self, event: &EventView<'a>) -> EventOrigin<'a> {
        let scalar = |index: usize| self.origin[index].map(|number| Scalar::of_view(event, number));
        let number = |index: usize| match scalar(index) {
            Some(Scalar::Integer(number)) => u64::try_from(number).ok(),
            _ => None,
        };
        let thread = match scalar(2) {
            Some(Scalar::Bytes(name)) if !name.is_empty() => Some(name),
            _ => None,
        };
        EventOrigin { pid: number(0), tid: number(1), thread }
    }
}

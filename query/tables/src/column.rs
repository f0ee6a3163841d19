//! Column values of one row group. Every column may be NULL.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use tracepoint_reader::metadata::types::EnumType;
use tracepoint_reader::{EventView, Value};
use tracepoint_ring::field;

use crate::column_type::{ColumnType, Member, Source, element_field, fields};

/// The values of a column in one row group.
#[derive(Debug)]
pub(crate) enum Column {
    Bool(BooleanBuilder),
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    I8(Int8Builder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Label(Arc<EnumType>, StringBuilder),
    Bytes(BinaryBuilder),
    List { element: ColumnType, ends: Vec<i32>, nulls: NullBufferBuilder, values: Box<Self> },
    Struct { members: Vec<Member>, nulls: NullBufferBuilder, columns: Vec<Self> },
}

/// A scalar value: a number, text or bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'a> {
    Null,
    Integer(i128),
    Float(f64),
    Bytes(&'a [u8]),
}

impl<'a> Scalar<'a> {
    /// The value of an event's field at `index`.
    #[inline]
    pub(crate) fn of_view(event: &EventView<'a>, index: usize) -> Self {
        use field::Value as V;
        match event.value(index) {
            Some(V::Unsigned(number)) => Self::Integer(number.into()),
            Some(V::Signed(number)) => Self::Integer(number.into()),
            Some(V::Bool(truth)) => Self::Integer(truth.into()),
            Some(V::Float(number)) => Self::Float(number),
            Some(V::Path(bytes)) => Self::Bytes(bytes),
            _ => Self::Null,
        }
    }

    fn of_value(value: &'a Value) -> Self {
        match value {
            Value::Int(int) | Value::Enum(int, _) => Self::Integer(int.value),
            Value::F32(number) => Self::Float(f64::from(*number)),
            Value::F64(number) => Self::Float(*number),
            Value::String(bytes) | Value::Bytes(bytes, _) => Self::Bytes(bytes),
            _ => Self::Null,
        }
    }
}

impl Column {
    pub(crate) fn new(ty: &ColumnType) -> Self {
        match ty {
            ColumnType::Bool => Self::Bool(BooleanBuilder::with_capacity(0)),
            ColumnType::Integer { bits: 8, signed: false } => Self::U8(UInt8Builder::with_capacity(0)),
            ColumnType::Integer { bits: 16, signed: false } => Self::U16(UInt16Builder::with_capacity(0)),
            ColumnType::Integer { bits: 32, signed: false } => Self::U32(UInt32Builder::with_capacity(0)),
            ColumnType::Integer { signed: false, .. } => Self::U64(UInt64Builder::with_capacity(0)),
            ColumnType::Integer { bits: 8, .. } => Self::I8(Int8Builder::with_capacity(0)),
            ColumnType::Integer { bits: 16, .. } => Self::I16(Int16Builder::with_capacity(0)),
            ColumnType::Integer { bits: 32, .. } => Self::I32(Int32Builder::with_capacity(0)),
            ColumnType::Integer { .. } => Self::I64(Int64Builder::with_capacity(0)),
            ColumnType::F32 => Self::F32(Float32Builder::with_capacity(0)),
            ColumnType::F64 => Self::F64(Float64Builder::with_capacity(0)),
            ColumnType::Text => Self::Text(StringBuilder::with_capacity(0, 0)),
            ColumnType::Label(labels) => Self::Label(Arc::clone(labels), StringBuilder::with_capacity(0, 0)),
            ColumnType::Bytes => Self::Bytes(BinaryBuilder::with_capacity(0, 0)),
            ColumnType::List(element) => Self::List {
                element: (**element).clone(),
                ends: vec![0],
                nulls: NullBufferBuilder::new(0),
                values: Box::new(Self::new(element)),
            },
            ColumnType::Struct(members) => Self::Struct {
                members: members.clone(),
                nulls: NullBufferBuilder::new(0),
                columns: members.iter().map(|member| Self::new(&member.ty)).collect(),
            },
        }
    }

    /// Appends a value, and returns its approximate size in memory in bytes.
    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "a number is within the range of its type")]
    pub(crate) fn scalar(&mut self, value: Scalar<'_>) -> usize {
        use Scalar::{Bytes, Float, Integer};
        match (self, value) {
            (Self::U64(column), Integer(number)) => column.append_value(number as u64),
            (Self::I64(column), Integer(number)) => column.append_value(number as i64),
            (Self::U32(column), Integer(number)) => column.append_value(number as u32),
            (Self::I32(column), Integer(number)) => column.append_value(number as i32),
            (Self::U16(column), Integer(number)) => column.append_value(number as u16),
            (Self::I16(column), Integer(number)) => column.append_value(number as i16),
            (Self::U8(column), Integer(number)) => column.append_value(number as u8),
            (Self::I8(column), Integer(number)) => column.append_value(number as i8),
            (Self::Bool(column), Integer(number)) => column.append_value(number != 0),
            (Self::F64(column), Float(number)) => column.append_value(number),
            (Self::F32(column), Float(number)) => column.append_value(number as f32),
            (Self::Text(column), Bytes(bytes)) => {
                column.append_value(String::from_utf8_lossy(bytes));
                return bytes.len() + 8;
            }
            (Self::Bytes(column), Bytes(bytes)) => {
                column.append_value(bytes);
                return bytes.len() + 8;
            }
            (Self::Label(labels, column), Integer(number)) => {
                let before = column.values_slice().len();
                match labels.labels(number).next() {
                    Some(label) => column.append_value(label),
                    None => column.append_value(number.to_string()),
                }
                return column.values_slice().len() - before + 8;
            }
            (column, _) => column.null(),
        }
        8
    }

    /// Appends a decoded value, and returns its approximate size in bytes.
    pub(crate) fn value(&mut self, value: Option<&Value>) -> usize {
        let Some((value, present)) = value.and_then(|value| Some((value, value.present()?))) else {
            self.null();
            return 8;
        };
        match (self, present) {
            (Self::Struct { members, nulls, columns }, _) => {
                nulls.append_non_null();
                let member = |(member, column): (&Member, &mut Self)| {
                    column.value(match (&member.source, value, present) {
                        (Source::Member(index), _, Value::Struct(members)) => members.at(*index),
                        (Source::Option(name), Value::Variant(option, value), _) if **option == **name => Some(value),
                        _ => None,
                    })
                };
                members.iter().zip(columns).map(member).sum()
            }
            (Self::List { ends, nulls, values, .. }, Value::Array(elements)) => {
                nulls.append_non_null();
                let bytes: usize = elements.iter().map(|element| values.value(Some(element))).sum();
                ends.push(ends.last().map_or(0, |last| last + i32::try_from(elements.len()).unwrap_or(0)));
                bytes + 8
            }
            (Self::Bool(column), Value::Struct(_)) => {
                column.append_value(true);
                8
            }
            (column, value) => column.scalar(Scalar::of_value(value)),
        }
    }

    fn null(&mut self) {
        match self {
            Self::Bool(column) => column.append_null(),
            Self::U8(column) => column.append_null(),
            Self::U16(column) => column.append_null(),
            Self::U32(column) => column.append_null(),
            Self::U64(column) => column.append_null(),
            Self::I8(column) => column.append_null(),
            Self::I16(column) => column.append_null(),
            Self::I32(column) => column.append_null(),
            Self::I64(column) => column.append_null(),
            Self::F32(column) => column.append_null(),
            Self::F64(column) => column.append_null(),
            Self::Text(column) | Self::Label(_, column) => column.append_null(),
            Self::Bytes(column) => column.append_null(),
            Self::List { ends, nulls, .. } => {
                nulls.append_null();
                ends.push(ends.last().copied().unwrap_or(0));
            }
            Self::Struct { nulls, columns, .. } => {
                nulls.append_null();
                columns.iter_mut().for_each(Self::null);
            }
        }
    }

    /// Takes the values as an array, which empties the column.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(column) => Arc::new(column.finish()),
            Self::U8(column) => Arc::new(column.finish()),
            Self::U16(column) => Arc::new(column.finish()),
            Self::U32(column) => Arc::new(column.finish()),
            Self::U64(column) => Arc::new(column.finish()),
            Self::I8(column) => Arc::new(column.finish()),
            Self::I16(column) => Arc::new(column.finish()),
            Self::I32(column) => Arc::new(column.finish()),
            Self::I64(column) => Arc::new(column.finish()),
            Self::F32(column) => Arc::new(column.finish()),
            Self::F64(column) => Arc::new(column.finish()),
            Self::Text(column) | Self::Label(_, column) => Arc::new(column.finish()),
            Self::Bytes(column) => Arc::new(column.finish()),
            Self::List { element, ends, nulls, values } => {
                let ends = OffsetBuffer::new(std::mem::replace(ends, vec![0]).into());
                Arc::new(ListArray::new(Arc::new(element_field(element)), ends, values.finish(), nulls.finish()))
            }
            Self::Struct { members, nulls, columns } => {
                let arrays = columns.iter_mut().map(Self::finish).collect();
                Arc::new(StructArray::new(fields(members), arrays, nulls.finish()))
            }
        }
    }
}

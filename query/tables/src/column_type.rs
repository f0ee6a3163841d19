//! Maps types of fields to types of Parquet. `docs/parquet.md` has the table.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use tracepoint_reader::metadata::types::{self, EnumType, Integer, StructType, Type};

use crate::names::unique;

/// The type of a column.
#[derive(Clone, Debug)]
pub(crate) enum ColumnType {
    Bool,
    Integer {
        bits: u8,
        signed: bool,
    },
    F32,
    F64,
    Text,
    /// The label of an enumeration, or the number if it has no label.
    Label(Arc<EnumType>),
    Bytes,
    List(Box<Self>),
    Struct(Vec<Member>),
}

/// A member of a structure, or an option of a variant.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    name: String,
    pub(crate) source: Source,
    pub(crate) ty: ColumnType,
}

/// The location of a member's value.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The member of a structure at this index.
    Member(usize),
    /// The option of a variant with this name.
    Option(String),
}

impl ColumnType {
    pub(crate) fn of(ty: &Type) -> Self {
        match ty {
            Type::Integer(ty) => Self::integer(*ty),
            Type::Float(ty) if ty.bits == 32 => Self::F32,
            Type::Float(_) => Self::F64,
            Type::Enum(ty, labels) => {
                let labelled: BTreeSet<_> = labels.mappings.iter().map(|one| one.first).collect();
                let is_exact = labels.mappings.iter().all(|one| one.first == one.last);
                if is_exact && labelled.len() == labels.mappings.len() {
                    Self::Label(Arc::clone(labels))
                } else {
                    // With labels for several values, the label would lose the value.
                    Self::integer(*ty)
                }
            }
            Type::Array(ty) if ty.element.is_character() => Self::Text,
            Type::Array(ty) if ty.element.is_plain_byte().is_some() => Self::Bytes,
            Type::Array(ty) => Self::List(Box::new(Self::of(&ty.element))),
            Type::Struct(ty) => Self::members(ty),
            Type::Variant(ty) => {
                let options: Vec<_> = ty.options.iter().filter(|option| option.name() != "none").collect();
                match &options[..] {
                    // An `Option` of a traced program.
                    [only] if only.name() == "some" => Self::of(&only.ty),
                    _ => Self::structure(options.into_iter().map(|one| (one, Source::Option(one.name().to_owned())))),
                }
            }
            // A string.
            _ => Self::Text,
        }
    }

    fn integer(ty: Integer) -> Self {
        if ty.truth {
            Self::Bool
        } else {
            Self::Integer { bits: ty.bits.next_power_of_two().max(8), signed: ty.signed }
        }
    }

    fn members(ty: &StructType) -> Self {
        let members = ty.fields.iter().enumerate().filter(|(index, _)| !ty.is_length(*index));
        Self::structure(members.map(|(index, field)| (field, Source::Member(index))))
    }

    /// Parquet has no structure without members: a present one becomes `true`.
    fn structure<'a>(members: impl Iterator<Item = (&'a types::Field, Source)>) -> Self {
        let mut taken = Vec::new();
        let member = |(field, source): (&types::Field, Source)| Member {
            name: unique(field.name(), &mut taken),
            source,
            ty: Self::of(&field.ty),
        };
        let members: Vec<_> = members.map(member).collect();
        if members.is_empty() { Self::Bool } else { Self::Struct(members) }
    }

    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Integer { bits: 8, signed: false } => DataType::UInt8,
            Self::Integer { bits: 16, signed: false } => DataType::UInt16,
            Self::Integer { bits: 32, signed: false } => DataType::UInt32,
            Self::Integer { signed: false, .. } => DataType::UInt64,
            Self::Integer { bits: 8, .. } => DataType::Int8,
            Self::Integer { bits: 16, .. } => DataType::Int16,
            Self::Integer { bits: 32, .. } => DataType::Int32,
            Self::Integer { .. } => DataType::Int64,
            Self::F32 => DataType::Float32,
            Self::F64 => DataType::Float64,
            Self::Text | Self::Label(_) => DataType::Utf8,
            Self::Bytes => DataType::Binary,
            Self::List(element) => DataType::List(Arc::new(element_field(element))),
            Self::Struct(members) => DataType::Struct(fields(members)),
        }
    }
}

pub(crate) fn element_field(element: &ColumnType) -> Field {
    Field::new("element", element.data_type(), true)
}

pub(crate) fn fields(members: &[Member]) -> Fields {
    members.iter().map(|member| Field::new(&member.name, member.ty.data_type(), true)).collect()
}

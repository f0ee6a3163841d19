//! Encodes the fields of a kernel event as those of a record.

use tracepoint_reader::kernel::{EventFormat, KernelField, KernelInteger, KernelType, Place, Sample};
use tracepoint_ring::field::{Base, ByteOrder, EnumLabel, FieldDescriptor, FieldType, IntegerType};

const ID: FieldType = FieldType::Integer(integer(KernelInteger { bytes: 4, signed: true, hex: false }));

/// The context of each event.
pub(super) static CONTEXT: [FieldDescriptor; 2] =
    [FieldDescriptor { name: "pid", ty: ID, doc: "" }, FieldDescriptor { name: "tid", ty: ID, doc: "" }];

const fn integer(ty: KernelInteger) -> IntegerType {
    let base = if ty.hex { Base::Hexadecimal } else { Base::Decimal };
    IntegerType { bits: ty.bytes * 8, signed: ty.signed, base, order: ByteOrder::Little }
}

/// Returns the fields of a record. They are leaked, like those of this process's own events: a recording has few events, and begins once.
pub(super) fn descriptors(format: &EventFormat) -> &'static [FieldDescriptor] {
    let describe = |field: &KernelField| FieldDescriptor { name: field.name.clone().leak(), ty: ty(field), doc: "" };
    format.fields.iter().map(describe).collect::<Vec<_>>().leak()
}

fn ty(field: &KernelField) -> FieldType {
    match (field.ty, field.place) {
        (KernelType::Integer(ty), _) => FieldType::Integer(integer(ty)),
        (KernelType::Text, _) => FieldType::Text,
        (KernelType::Named(ty, names), _) => {
            let label = |(value, name): &(i64, &'static str)| EnumLabel { name, value: i128::from(*value) };
            let labels = names.iter().map(label).collect::<Vec<_>>().leak();
            FieldType::Enum { container: integer(ty), labels }
        }
        (KernelType::Array(ty), place) => {
            let element = &vec![FieldType::Integer(integer(ty))].leak()[0];
            match place {
                Place::Fixed { size, .. } => FieldType::Array { element, len: size / usize::from(ty.bytes) },
                Place::Dynamic { .. } => FieldType::Sequence { element },
            }
        }
    }
}

/// Appends a record: header word, context, fields. Bytes that the event lacks are 0.
pub(super) fn record(out: &mut Vec<u8>, (id, time): (u16, u64), sample: &Sample<'_>, format: &EventFormat) {
    out.extend((time << 16 | u64::from(id)).to_le_bytes());
    out.extend(sample.pid.to_le_bytes());
    out.extend(sample.tid.to_le_bytes());
    for field in &format.fields {
        let bytes = field.bytes(&sample.raw);
        let size = match (field.ty, field.place) {
            (KernelType::Text, _) => {
                out.extend(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
                out.push(0);
                continue;
            }
            (KernelType::Integer(ty) | KernelType::Named(ty, _), _) => usize::from(ty.bytes),
            (KernelType::Array(ty), Place::Fixed { size, .. }) => size - size % usize::from(ty.bytes),
            (KernelType::Array(ty), Place::Dynamic { .. }) => {
                let count = bytes.len() / usize::from(ty.bytes);
                out.extend((count as u32).to_le_bytes());
                count * usize::from(ty.bytes)
            }
        };
        let present = &bytes[..bytes.len().min(size)];
        out.extend(present);
        out.resize(out.len() + size - present.len(), 0);
    }
}

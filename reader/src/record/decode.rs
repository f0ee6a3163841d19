//! Decodes complete records with a known layout: the tracer's own, with members that are numbers, texts and bytes.
//!
//! The values equal those of the general [decoder](crate::decode), without its bookkeeping for each value: a member is read at its position in the
//! record. All other records are left to that decoder, including incomplete ones: it reports the fault.

use std::sync::Arc;

use super::layout::{ClassLayouts, MAX_RECORD, RecordLayout, TIME_BITS, WORD, length_before, number, until_nul};
use crate::decode::{State, extend};
use crate::metadata::types::{Integer, Length, StructType, Type};
use crate::metadata::{EventClass, StreamClass};
use crate::source::Source;
use crate::value::{Int, StructValue, Value};

/// A decoded record.
pub(crate) struct Record<'a> {
    pub(crate) class: &'a Arc<EventClass>,
    pub(crate) size: usize,
    pub(crate) stream_context: Option<StructValue>,
    pub(crate) context: Option<StructValue>,
    pub(crate) fields: Option<StructValue>,
}

/// Decodes the record at byte `at` of the packet that starts at `base` in the source, and whose content ends at byte `end`. Advances the clock to
/// its time. `None`, with nothing changed, if the general decoder must read it.
pub(crate) fn next<'a>(
    source: &mut impl Source,
    base: u64,
    (at, end): (u64, u64),
    state: &mut State,
    stream: &'a StreamClass,
) -> Option<Record<'a>> {
    let left = usize::try_from(end - at).unwrap_or(usize::MAX);
    let bytes = source.bytes(base + at, WORD.min(left)).ok()?;
    let bytes = &bytes[..bytes.len().min(left)];
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let (class, layout) = ClassLayouts::plain(stream)?.get(word as u16)?;
    let size = layout.size(bytes).filter(|size| *size <= bytes.len().min(MAX_RECORD))?;
    let mut members = Members { record: &bytes[..size], layout, index: 0 };
    // The order in which a layout numbers the members.
    let fields = members.of(class.fields.as_ref()).ok()?;
    let context = members.of(class.context.as_ref()).ok()?;
    let stream_context = members.of(stream.event_context.as_ref()).ok()?;
    state.clock = extend(state.clock, word >> 16, TIME_BITS);
    Some(Record { class, size, stream_context, context, fields })
}

/// The undecoded members of a record.
struct Members<'a> {
    record: &'a [u8],
    layout: &'a RecordLayout,
    index: usize,
}

impl Members<'_> {
    /// The members of a structure, if there is one; an error if the general decoder must read them.
    fn of(&mut self, ty: Option<&Arc<StructType>>) -> Result<Option<StructValue>, ()> {
        ty.map(|ty| self.structure(ty).ok_or(())).transpose()
    }

    fn structure(&mut self, ty: &Arc<StructType>) -> Option<StructValue> {
        let mut values = Vec::with_capacity(ty.fields.len());
        for field in &ty.fields {
            values.push(value(&field.ty, self.record, self.layout.place(self.record, self.index)?)?);
            self.index += 1;
        }
        Some(StructValue { ty: Arc::clone(ty), values })
    }
}

/// The value of a member that begins at `at`.
fn value(ty: &Type, record: &[u8], at: usize) -> Option<Value> {
    let rest = record.get(at..)?;
    Some(match ty {
        Type::Integer(ty) => Value::Int(integer(ty, rest)?),
        Type::Enum(ty, labels) => Value::Enum(integer(ty, rest)?, Arc::clone(labels)),
        Type::Float(ty) => {
            let raw = number(rest, ty.bits, ty.order)?;
            if ty.bits == 32 { Value::F32(f32::from_bits(raw as u32)) } else { Value::F64(f64::from_bits(raw)) }
        }
        Type::String => Value::String(until_nul(rest).into()),
        Type::Array(ty) => {
            let length = match ty.length {
                Length::Fixed(count) => usize::try_from(count).ok()?,
                Length::Field(_) => length_before(record, at)?,
            };
            let bytes = rest.get(..length)?;
            match ty.element.is_plain_byte() {
                _ if ty.element.is_character() => Value::String(until_nul(bytes).into()),
                Some(byte) => Value::Bytes(bytes.into(), byte.base),
                None => return None,
            }
        }
        Type::Struct(_) | Type::Variant(_) => return None,
    })
}

fn integer(ty: &Integer, bytes: &[u8]) -> Option<Int> {
    let raw = number(bytes, ty.bits, ty.order)?;
    let unused = 64 - u32::from(ty.bits);
    let value = if ty.signed { i128::from((raw << unused).cast_signed() >> unused) } else { i128::from(raw) };
    Some(Int { value, bits: ty.bits, signed: ty.signed, base: ty.base, truth: ty.truth })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoder, Fault};
    use crate::metadata::Metadata;
    use proptest::prelude::*;

    const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 24; align = 8; signed = true; base = 16; } := i24;
typealias integer { size = 64; align = 8; signed = true; } := i64;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = "mono"; freq = 1000000000; };
stream { id = 0;
  event.header := struct {
    integer { size = 16; align = 8; signed = false; } id;
    integer { size = 48; align = 8; signed = false; map = clock.mono.value; } timestamp;
  };
  event.context := struct { u32 vtid; string procname; };
};
event { name = "numbers"; id = 0; stream_id = 0; fields := struct {
  i24 a; i64 b; integer { size = 32; align = 8; signed = true; byte_order = be; } c;
  floating_point { exp_dig = 8; mant_dig = 24; align = 8; } d; floating_point { exp_dig = 11; mant_dig = 53; align = 8; } e;
  enum : u8 { "one" = 1, "many" = 2 ... 255 } f;
}; };
event { name = "texts"; id = 1; stream_id = 0; context := struct { u8 depth; }; fields := struct {
  string a; u32 n; u8 b[n]; u32 m; integer { size = 8; align = 8; signed = false; encoding = UTF8; } c[m];
  integer { size = 8; align = 8; signed = false; encoding = UTF8; } d[5]; u8 e[4];
}; };
event { name = "lists"; id = 2; stream_id = 0; fields := struct { u32 n; u32 a[n]; }; };
event { name = "nothing"; id = 3; stream_id = 0; };
"#;

    /// The general decoder's result for the record: its size, its time and its values.
    fn general(bytes: &[u8], metadata: &Metadata, state: &mut State) -> Result<(usize, u64, String), Fault> {
        let stream = metadata.stream(0).expect("declared");
        let (mut source, mut id) = (bytes, None);
        let mut decoder = Decoder::new(&mut source, state, 0, 0, bytes.len() as u64 * 8);
        decoder.header(stream.event_header.as_ref().expect("declared"), &mut id)?;
        let class = id.and_then(|id| stream.events.get(&id)).ok_or_else(|| decoder.fault("no such event"))?;
        let mut part = |ty: &Option<Arc<StructType>>| ty.as_ref().map(|ty| decoder.structure(ty)).transpose();
        let parts = (part(&stream.event_context)?, part(&class.context)?, part(&class.fields)?);
        Ok((decoder.at as usize / 8, decoder.clock(), format!("{parts:?}")))
    }

    fn record(id: u16, body: &[u8]) -> Vec<u8> {
        [&id.to_le_bytes()[..], &[7, 0, 0, 0, 0, 1], body].concat()
    }

    /// Checks that both decoders agree if the record was decoded here, and that otherwise nothing has changed. Returns true in the first case.
    fn is_decoded_alike(bytes: &[u8]) -> bool {
        let metadata = Metadata::parse(METADATA.as_bytes()).expect("is valid");
        let stream = metadata.stream(0).expect("declared");
        let mut state = State::new(metadata.slots());
        state.clock = 1 << 50;
        let mut other = state.clone();
        let mut source = bytes;
        match next(&mut source, 0, (0, bytes.len() as u64), &mut state, stream) {
            None => {
                assert_eq!(state.clock, 1 << 50);
                false
            }
            Some(Record { size, stream_context, context, fields, .. }) => {
                let own = (size, state.clock, format!("{:?}", (stream_context, context, fields)));
                assert_eq!(own, general(bytes, &metadata, &mut other).expect("decodes it, too"));
                true
            }
        }
    }

    #[test]
    fn whole_records_are_decoded_here_and_others_are_left_to_the_general_decoder() {
        let numbers = record(0, b"\x01\0\0\0app\0\xff\xff\xff12345678\xff\0\0\x01abcd\0\0\0\0\0\0\xf0\x3f\x02");
        assert!(is_decoded_alike(&numbers));
        assert!(is_decoded_alike(&[&numbers[..], b"the next one"].concat()));
        (0..numbers.len()).for_each(|length| assert!(!is_decoded_alike(&numbers[..length]), "{length}"));
        let texts = record(1, b"\x01\0\0\0\0\x09text\0\x02\0\0\0xy\x03\0\0\0a\0bcd\0efwxyz");
        assert!(is_decoded_alike(&texts));
        (0..texts.len()).for_each(|length| assert!(!is_decoded_alike(&texts[..length]), "{length}"));
        assert!(is_decoded_alike(&record(3, b"\x01\0\0\0app\0")));
        assert!(!is_decoded_alike(&record(2, b"\x01\0\0\0app\0\0\0\0\0")), "a list of numbers");
        assert!(!is_decoded_alike(&record(4, b"\x01\0\0\0app\0")), "not declared");
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_alike(id in 0_u16..5, body in proptest::collection::vec(prop_oneof![Just(0), 0_u8..8, any::<u8>()], 0..80)) {
            is_decoded_alike(&record(id, &body));
        }
    }
}

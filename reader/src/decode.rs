//! Decodes values by their types: alignment, bit fields in both orders, arrays, variants, clocks.
//!
//! Offsets are in bits from the start of the packet. Two limits apply to each event: the memory for its values, and the number of values that take
//! no bits (empty structures and arrays of them).

mod state;

pub(crate) use state::{State, extend};
use std::io;
use std::sync::Arc;

use crate::metadata::types::{ArrayType, ByteOrder, Field, Float, Integer, Length, StructType, Type, VariantType};
use crate::source::Source;
use crate::value::{Int, StructValue, Value};

/// Maximum memory for the values of one event, in bytes.
const BUDGET: usize = 64 << 20;
/// Maximum number of values of one event beyond one for each of its bits.
const EMPTY_VALUES: u64 = 1024;
/// Number of bytes of a string read at once.
const STRING_STEP: usize = 256;

/// The reason why decoding stopped, and the bit of the packet.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) bit: u64,
    pub(crate) reason: String,
    /// True if the bytes ended too early, false if they are wrong.
    pub(crate) short: bool,
}

impl Fault {
    /// The reason as a fault in a packet's header.
    pub(crate) fn in_header(self) -> String {
        if self.short { "the bytes end within a packet's header".to_owned() } else { self.reason }
    }
}

/// Reads one packet's values, one after another.
pub(crate) struct Decoder<'a, S> {
    source: &'a mut S,
    state: &'a mut State,
    /// Start of the packet in the source, in bytes.
    base: u64,
    /// The next bit to read.
    pub(crate) at: u64,
    /// The bit after the last one that may be read.
    end: u64,
    budget: usize,
    values: u64,
    first: u64,
}

impl<'a, S: Source> Decoder<'a, S> {
    pub(crate) fn new(source: &'a mut S, state: &'a mut State, base: u64, at: u64, end: u64) -> Self {
        Self { source, state, base, at, end, budget: BUDGET, values: 0, first: at }
    }

    pub(crate) fn clock(&self) -> u64 {
        self.state.clock
    }

    pub(crate) fn fault(&self, reason: impl Into<String>) -> Fault {
        Fault { bit: self.at, reason: reason.into(), short: false }
    }

    fn short(&self) -> Fault {
        Fault { bit: self.at, reason: "the packet ends within a value".to_owned(), short: true }
    }

    fn unreadable(&self, error: &io::Error) -> Fault {
        self.fault(format!("cannot be read: {error}"))
    }

    fn align(&mut self, align: u32) -> Result<(), Fault> {
        let mask = u64::from(align) - 1;
        let aligned = self.at.checked_add(mask).map(|at| at & !mask);
        match aligned {
            Some(at) if at <= self.end => {
                self.at = at;
                Ok(())
            }
            _ => Err(self.short()),
        }
    }

    /// Checks that at least `bits` more bits exist.
    fn need(&self, bits: u64) -> Result<(), Fault> {
        if bits > self.end - self.at { Err(self.short()) } else { Ok(()) }
    }

    fn bits(&mut self, bits: u8, order: ByteOrder) -> Result<u64, Fault> {
        self.need(u64::from(bits))?;
        let skip = (self.at % 8) as u32;
        let count = (skip + u32::from(bits)).div_ceil(8) as usize;
        let offset = self.base + self.at / 8;
        let bytes = match self.source.bytes(offset, count) {
            Ok(bytes) if bytes.len() >= count => &bytes[..count],
            Ok(_) => return Err(self.short()),
            Err(error) => return Err(self.unreadable(&error)),
        };
        // At most 7 + 64 bits are gathered.
        let mask = (1u128 << bits) - 1;
        let value = match order {
            ByteOrder::Little => {
                let gathered = bytes.iter().rev().fold(0u128, |sum, b| sum << 8 | u128::from(*b));
                gathered >> skip & mask
            }
            ByteOrder::Big => {
                let gathered = bytes.iter().fold(0u128, |sum, b| sum << 8 | u128::from(*b));
                gathered >> (count as u32 * 8 - skip - u32::from(bits)) & mask
            }
        };
        self.at += u64::from(bits);
        Ok(value as u64)
    }

    fn integer(&mut self, ty: &Integer) -> Result<Int, Fault> {
        self.align(ty.align)?;
        let raw = self.bits(ty.bits, ty.order)?;
        let value = if ty.signed {
            let unused = 64 - u32::from(ty.bits);
            i128::from((raw << unused).cast_signed() >> unused)
        } else {
            i128::from(raw)
        };
        let int = Int { value, bits: ty.bits, signed: ty.signed, base: ty.base, truth: ty.truth };
        if let Some(slot) = ty.slot {
            self.state.keep(slot, int.pattern());
        }
        if ty.clock.is_some() {
            self.state.tick(raw, ty.bits);
        }
        Ok(int)
    }

    fn float(&mut self, ty: Float) -> Result<Value, Fault> {
        self.align(ty.align)?;
        let raw = self.bits(ty.bits, ty.order)?;
        Ok(match ty.bits {
            32 => Value::F32(f32::from_bits(raw as u32)),
            _ => Value::F64(f64::from_bits(raw)),
        })
    }

    /// Counts a value against the limits per event.
    fn admit(&mut self, bytes: usize) -> Result<(), Fault> {
        self.values += 1;
        if self.values > EMPTY_VALUES + (self.at - self.first) {
            return Err(self.fault("too many values that take no space"));
        }
        match self.budget.checked_sub(size_of::<Value>() + bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(self.fault(format!("one event needs more than {BUDGET} bytes of memory"))),
        }
    }

    /// Decodes a value of any type.
    pub(crate) fn value(&mut self, ty: &Type) -> Result<Value, Fault> {
        self.admit(0)?;
        match ty {
            Type::Integer(ty) => Ok(Value::Int(self.integer(ty)?)),
            Type::Enum(ty, labels) => Ok(Value::Enum(self.integer(ty)?, Arc::clone(labels))),
            Type::Float(ty) => self.float(*ty),
            Type::String => self.string(),
            Type::Struct(ty) => Ok(Value::Struct(self.structure(ty)?)),
            Type::Array(ty) => self.array(ty),
            Type::Variant(ty) => {
                let option = self.option(ty)?;
                let value = self.value(&option.ty)?;
                Ok(Value::Variant(option.name().into(), Box::new(value)))
            }
        }
    }

    pub(crate) fn structure(&mut self, ty: &Arc<StructType>) -> Result<StructValue, Fault> {
        self.align(ty.align)?;
        // A large type alone must not reserve much memory.
        let mut values = Vec::with_capacity(ty.fields.len().min(64));
        for field in &ty.fields {
            values.push(self.value(&field.ty)?);
        }
        Ok(StructValue { ty: Arc::clone(ty), values })
    }

    fn option<'t>(&self, ty: &'t VariantType) -> Result<&'t Field, Fault> {
        let tag = self.state.kept(ty.tag.slot);
        let chooses = |value: i128| ty.choices.iter().find(|c| (c.first..=c.last).contains(&value));
        // The slot keeps a negative tag as its two's complement.
        let choice = chooses(i128::from(tag)).or_else(|| chooses(i128::from(tag.cast_signed())));
        choice
            .and_then(|choice| ty.options.get(choice.option))
            .ok_or_else(|| self.fault(format!("no option of the variant has the tag {tag}")))
    }

    fn string(&mut self) -> Result<Value, Fault> {
        self.align(8)?;
        let mut text = Vec::new();
        loop {
            let offset = self.base + self.at / 8;
            let left = (self.end - self.at) / 8;
            let bytes = match self.source.bytes(offset, STRING_STEP.min(left as usize)) {
                Ok(bytes) => bytes,
                Err(error) => return Err(self.unreadable(&error)),
            };
            let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if bytes.is_empty() {
                return Err(self.short());
            }
            let end = bytes.iter().position(|b| *b == 0);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            text.extend_from_slice(part);
            let length = part.len();
            self.at += (length as u64 + u64::from(end.is_some())) * 8;
            self.budget = match self.budget.checked_sub(length) {
                Some(budget) => budget,
                None => return Err(self.fault(format!("a string is longer than {BUDGET} bytes"))),
            };
            if end.is_some() {
                return Ok(Value::String(text.into_boxed_slice()));
            }
        }
    }

    fn array(&mut self, ty: &ArrayType) -> Result<Value, Fault> {
        let count = match &ty.length {
            Length::Fixed(count) => *count,
            Length::Field(reference) => self.state.kept(reference.slot),
        };
        self.align(ty.element.align())?;
        if ty.element.is_character() {
            let mut text = self.run(count)?;
            if let Some(end) = text.iter().position(|b| *b == 0) {
                text.truncate(end);
            }
            return Ok(Value::String(text.into_boxed_slice()));
        }
        if let Some(byte) = ty.element.is_plain_byte() {
            return Ok(Value::Bytes(self.run(count)?.into_boxed_slice(), byte.base));
        }
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(&ty.element)?);
        }
        Ok(Value::Array(values))
    }

    /// The next `count` bytes. The position must be at a byte boundary.
    fn run(&mut self, count: u64) -> Result<Vec<u8>, Fault> {
        self.need(count.saturating_mul(8))?;
        let size = usize::try_from(count).unwrap_or(usize::MAX);
        self.admit(size)?;
        let offset = self.base + self.at / 8;
        let bytes = match self.source.bytes(offset, size) {
            Ok(bytes) if bytes.len() >= size => bytes[..size].to_vec(),
            Ok(_) => return Err(self.short()),
            Err(error) => return Err(self.unreadable(&error)),
        };
        self.at += count * 8;
        Ok(bytes)
    }

    /// Reads an event header only for the clock, the slots and the event's id. The id is the last integer called `id`, in any structure or
    /// option.
    pub(crate) fn header(&mut self, ty: &StructType, id: &mut Option<u64>) -> Result<(), Fault> {
        self.align(ty.align)?;
        for field in &ty.fields {
            self.header_field(&field.ty, field.name() == "id", id)?;
        }
        Ok(())
    }

    fn header_field(&mut self, ty: &Type, is_id: bool, id: &mut Option<u64>) -> Result<(), Fault> {
        self.admit(0)?;
        match ty {
            Type::Integer(integer) | Type::Enum(integer, _) => {
                let int = self.integer(integer)?;
                if is_id {
                    *id = Some(int.pattern());
                }
            }
            Type::Struct(ty) => self.header(ty, id)?,
            Type::Variant(ty) => {
                let option = self.option(ty)?;
                self.header_field(&option.ty, option.name() == "id", id)?;
            }
            other => {
                self.value(other)?;
            }
        }
        Ok(())
    }
}

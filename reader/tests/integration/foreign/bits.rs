//! Writes bit fields in both byte orders.

use tracepoint_reader::metadata::types::ByteOrder::{self, Little};

/// Bits of a packet, from its start.
pub(super) struct Bits {
    order: ByteOrder,
    bits: Vec<bool>,
}

impl Bits {
    pub(super) fn new(order: ByteOrder) -> Self {
        Self { order, bits: Vec::new() }
    }

    /// Appends the low `size` bits of a number, after padding to a multiple of `align` bits.
    pub(super) fn put(&mut self, number: u64, size: usize, align: usize) -> &mut Self {
        self.align(align);
        for bit in 0..size {
            // In little endian, the least significant bit comes first.
            let place = if self.order == Little { bit } else { size - 1 - bit };
            self.bits.push(number >> place & 1 == 1);
        }
        self
    }

    pub(super) fn align(&mut self, align: usize) -> &mut Self {
        self.bits.resize(self.bits.len().next_multiple_of(align), false);
        self
    }

    /// Appends whole bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.align(8);
        for byte in bytes {
            self.put(u64::from(*byte), 8, 8);
        }
        self
    }

    pub(super) fn len(&self) -> usize {
        self.bits.len()
    }

    /// The bytes. The first bit of a byte is the least significant one in little endian, and the most significant one in big endian.
    pub(super) fn done(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            let weight = |at: usize| if self.order == Little { 1u8 << at } else { 0x80 >> at };
            bits.iter().enumerate().filter(|(_, bit)| **bit).fold(0, |byte, (at, _)| byte | weight(at))
        };
        self.bits.chunks(8).map(byte).collect()
    }
}

//! Little-endian integers at fixed offsets of a block of bytes.

/// A block of bytes with fields at known offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// `N` bytes at `at`; zeros beyond the end.
    pub(crate) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut out = [0; N];
        if let Some(bytes) = self.slice(at, N) {
            out.copy_from_slice(bytes);
        }
        out
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    /// `length` bytes at `at`; `None` if the block ends before.
    pub(crate) fn slice(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.0.get(at..at.checked_add(length)?)
    }
}

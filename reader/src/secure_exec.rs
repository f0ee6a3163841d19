//! Detects secure execution mode: processes that gained rights when they were executed (set-user-ID, set-group-ID, file capabilities). These must
//! not trust their environment.

use std::path::Path;
use std::sync::OnceLock;

/// True if this process runs in secure execution mode, or if that cannot be determined.
pub fn secure() -> bool {
    // Cached: the answer never changes, and a thread that acts as another user could not read it again.
    static SECURE: OnceLock<bool> = OnceLock::new();
    *SECURE.get_or_init(|| is_secure(Path::new("/proc/self")))
}

/// True if the process with this directory in `/proc` runs in secure execution mode.
pub fn is_secure(process: &Path) -> bool {
    /// The key of the entry in the auxiliary vector, from `linux/auxvec.h`.
    const AT_SECURE: u64 = 23;
    let Ok(vector) = std::fs::read(process.join("auxv")) else { return true };
    let words = vector.chunks_exact(size_of::<usize>()).map(word).collect::<Vec<_>>();
    let found = words.chunks_exact(2).find(|entry| entry[0] == AT_SECURE);
    found.is_none_or(|entry| entry[1] != 0)
}

/// A word of the auxiliary vector, in native byte order.
fn word(bytes: &[u8]) -> u64 {
    let most_significant_first = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    if cfg!(target_endian = "big") {
        most_significant_first
    } else {
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_program_is_not_in_secure_execution_mode() {
        assert!(!secure());
    }
}

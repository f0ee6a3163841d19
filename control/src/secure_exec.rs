//! Secure execution: programs that were given more rights than the user who started them (set-user-id, capabilities).

use std::path::Path;
use std::sync::OnceLock;

/// Whether this process was given more rights than its user has (set-user-id, capabilities). In doubt it was.
pub(crate) fn secure() -> bool {
    // It does not change; and a thread that acts as another user cannot look any more.
    static SECURE: OnceLock<bool> = OnceLock::new();
    *SECURE.get_or_init(|| is_secure(Path::new("/proc/self")))
}

/// The same of the process whose directory in `/proc` this is.
pub(crate) fn is_secure(process: &Path) -> bool {
    /// The key of the entry, as the kernel has it.
    const AT_SECURE: u64 = 23;
    let Ok(vector) = std::fs::read(process.join("auxv")) else { return true };
    let words = vector.chunks_exact(size_of::<usize>()).map(word).collect::<Vec<_>>();
    let found = words.chunks_exact(2).find(|entry| entry[0] == AT_SECURE);
    found.is_none_or(|entry| entry[1] != 0)
}

/// A word of the kernel's, in the machine's order.
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
    fn a_program_that_anybody_started_follows_its_environment() {
        assert!(!secure());
    }
}

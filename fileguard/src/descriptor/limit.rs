//! Remedies for a lack of descriptors or memory.

use rustix::io::Errno;
use std::io;

/// The remedy, as the end of a message, for an error that would affect other files or directories as well: a lack of descriptors or of memory. `None`
/// for other errors.
pub fn shortage_mend(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => {
            Some("; raise the limit of the process on open files (`ulimit -n`, `LimitNOFILE=` of a systemd unit)")
        }
        Errno::NFILE => Some("; raise the limit of the system on open files (`sysctl fs.file-max`), or end programs"),
        Errno::NOMEM | Errno::AGAIN => Some("; free memory, or raise the limit on it"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_was_met_is_named() {
        let mend = |errno: Errno| shortage_mend(&errno.into()).unwrap_or_default();
        assert!(mend(Errno::MFILE).contains("ulimit -n") && mend(Errno::NFILE).contains("fs.file-max"));
        assert!(mend(Errno::NOMEM).contains("memory"));
        assert_eq!(mend(Errno::ACCESS), "");
        assert_eq!(shortage_mend(&io::Error::other("no errno")), None);
    }
}

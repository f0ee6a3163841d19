//! A file that a verb writes in one go, or the standard output.

use crate::failure::Failure;
use crate::output;
use std::io::Write;
use std::path::Path;

/// True if this file name stands for the standard output.
pub(crate) fn is_standard(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Writes a whole file, or the standard output if its name is `-`.
pub(crate) fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    if is_standard(file) {
        let mut out = output::raw();
        out.write_all(content)?;
        return Ok(out.flush()?);
    }
    std::fs::write(file, content).map_err(|error| Failure::Refused(format!("cannot write {}: {error}", file.display())))
}

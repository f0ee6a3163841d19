//! The configuration of the helper, which the kernel starts without an environment.

use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tracepoint_session_spec::table;

/// The treatment of core images, and the previous `core_pattern`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// The pattern before the helper was installed.
    pub(super) previous: String,
    /// True if core images are passed on to the handler in `previous`.
    pub(super) chain: bool,
    /// The directory into which core images are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) save: Option<PathBuf>,
}

impl Config {
    /// Its path, unless the pattern contains another one.
    pub(super) const PLACE: &str = "/var/lib/tracepoint/core-handler.toml";

    pub(super) fn read(file: &Path) -> io::Result<Self> {
        table::parse(&fs::read_to_string(file)?).and_then(table::read).map_err(io::Error::other)
    }

    /// Writes it, readable by root only; it gets its name when it is complete.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let text = table::write(self).and_then(table::to_text).map_err(io::Error::other)?;
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir)?;
        }
        let new = file.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut out: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&new, file)
    }
}

//! Location of a stream's files.

use crate::storage::Files;
use std::io;
use std::path::PathBuf;
use tracepoint_wire::relay::{IndexFile, METADATA_CHANNEL};

#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The path of the trace, as sent by the sender.
    pub(crate) path: PathBuf,
    /// The directory on this host.
    pub(crate) directory: PathBuf,
    /// The file name.
    pub(crate) channel: String,
    /// The format of index files; `None` if the stream has none.
    pub(crate) format: Option<IndexFile>,
    /// Maximum file size in bytes, and number of files kept; 0 means no limit.
    pub(crate) limit: (u64, u64),
}

impl Place {
    pub(crate) fn is_metadata(&self) -> bool {
        self.channel == METADATA_CHANNEL
    }

    /// Creates the files with this number in the series of a stream that has a maximum file size.
    pub(crate) fn create(&self, number: u64) -> io::Result<Files> {
        if self.is_metadata() {
            return Files::create_metadata(&self.directory);
        }
        let (largest, count) = self.limit;
        let name = match (largest, count) {
            (0, _) => self.channel.clone(),
            (_, 0) => format!("{}_{number}", self.channel),
            (_, count) => {
                let name = format!("{}_{}", self.channel, number % count);
                if number >= count {
                    // The name is reused; viewers that have the old file open continue to read it.
                    std::fs::remove_file(self.directory.join(&name))?;
                    let _ = std::fs::remove_file(self.directory.join("index").join(format!("{name}.idx")));
                }
                name
            }
        };
        let format = self.format.unwrap_or(IndexFile { is_long: true });
        Files::create(&self.directory.join(name), format, self.format.is_some())
    }
}

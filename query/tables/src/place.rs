//! The origin of events: partitions of a store, which are columns as well.

use std::path::{Path, PathBuf};

use crate::days;
use crate::names::{as_stored, partition};

/// The host and session of events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostSession {
    /// The name of the host.
    pub host: Option<String>,
    /// The name of the session.
    pub session: Option<String>,
}

impl HostSession {
    /// The directory of a day.
    pub fn directory(&self, day: Option<i64>) -> PathBuf {
        let day = partition("day", day.map(days::text).as_deref());
        let keys = [partition("host", self.host.as_deref()), partition("session", self.session.as_deref())];
        Path::new(&day).join(&keys[0]).join(&keys[1])
    }

    /// The column `session`.
    pub fn session_column(&self) -> Option<String> {
        as_stored(self.session.as_deref())
    }

    /// The column `host` of the tables without events.
    pub fn host_column(&self) -> Option<String> {
        as_stored(self.host.as_deref())
    }
}

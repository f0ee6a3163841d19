//! The shared key of a collector. A missing key is made when the collector listens, and its user is told how to connect with it.

use crate::failure::Failure;
use crate::shared_key::{make, not_made, path_of_collector, random_key};
use rustix::system::uname;
use std::io::{ErrorKind, IsTerminal, stderr};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tracepoint_collector::{Addresses, Collector, Options};
use tracepoint_wire::stream::SharedKey;

/// The source of the shared key.
pub(super) enum Key {
    None,
    /// A file given by the user.
    In(PathBuf),
    /// The key of this user's collectors.
    OfCollector,
}

pub(super) struct BoundCollector {
    pub(super) collector: Collector,
    pub(super) key_file: Option<PathBuf>,
    /// The key, if it was made by this start.
    made: Option<String>,
}

impl BoundCollector {
    pub(super) fn new(options: Options, key: Key) -> Result<Self, Failure> {
        let path = match key {
            Key::None => {
                return Ok(Self {
                    collector: Collector::bind(Options { without_key: true, ..options })?,
                    key_file: None,
                    made: None,
                });
            }
            Key::In(path) => path,
            Key::OfCollector => {
                let path = path_of_collector()?;
                if path.symlink_metadata().is_err() {
                    let text = random_key().map_err(|error| not_made(&path, &error))?;
                    let key = SharedKey::new(text.as_bytes());
                    let key = key.ok_or_else(|| not_made(&path, &ErrorKind::InvalidData.into()))?;
                    let collector = Collector::bind(Options { key: Some(key), ..options.clone() })?;
                    if make(&path, &text)? {
                        return Ok(Self { collector, key_file: Some(path), made: Some(text) });
                    }
                    // Another collector of this user made the key in the meantime.
                }
                path
            }
        };
        let collector = Collector::bind(Options { key: Some(SharedKey::read(&path)?), ..options })?;
        Ok(Self { collector, key_file: Some(path), made: None })
    }

    /// The message to the user about the key.
    pub(super) fn about_key(&self) -> Option<String> {
        let path = self.key_file.as_ref()?;
        Some(match &self.made {
            None => format!("asks senders and viewers for the key in {}", path.display()),
            // Standard error may be a log that others can read: print the key on a terminal only.
            Some(key) => how_to_connect(self.collector.addresses(), path, stderr().is_terminal().then_some(key)),
        })
    }
}

/// Explains how senders and viewers connect; includes the key itself if it is `shown`.
fn how_to_connect(addresses: Addresses, path: &Path, shown: Option<&String>) -> String {
    let host = match addresses.control.ip() {
        ip if !ip.is_unspecified() => SocketAddr::new(ip, 0).to_string().trim_end_matches(":0").to_owned(),
        _ => uname().nodename().to_string_lossy().into(),
    };
    let Addresses { control, data, live, .. } = addresses;
    let path = path.display();
    let (where_it_is, key) = match shown {
        Some(key) => ("it is printed this once. On their hosts:".to_owned(), key.as_str()),
        None => (format!("which `cat {path}` shows. On their hosts, with that in place of KEY:"), "KEY"),
    };
    format!(
        "made a key for senders and viewers, in {path}; {where_it_is}\n  \
         (umask 77; echo {key} >collector.key)\n  \
         tracectl record --stream {host}:{}:{} --key-file collector.key -e 'PROVIDER:*'\n  \
         tracectl view net://{host}:{} --key-file collector.key",
        control.port(),
        data.port(),
        live.port()
    )
}

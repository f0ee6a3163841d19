//! The events of the kernel, and their fields.

use super::KernelError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_core::internal::nearest_names;
use tracepoint_reader::kernel::EventFormat;
use tracepoint_session_spec::glob::Glob;

/// The mount points of tracefs: the usual one, and the one of Linux before 4.1.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Events of this kernel, with their fields.
#[derive(Clone, Debug)]
pub struct KernelEvents(pub(super) Vec<(String, EventFormat)>);

impl KernelEvents {
    /// Selects the events that match `patterns`: `system:event` with the globs of rules; `!…` excludes events, in any position. Sorted by
    /// name.
    ///
    /// # Errors
    ///
    /// If tracefs is not mounted or cannot be read, or a pattern is malformed or matches no event.
    pub fn select<P: AsRef<str>>(patterns: &[P]) -> Result<Self, KernelError> {
        let globs = patterns.iter().map(|pattern| {
            let pattern = pattern.as_ref().trim();
            let (excludes, text) = pattern.strip_prefix('!').map_or((false, pattern), |text| (true, text));
            Ok((text, excludes, Glob::parse(text).map_err(|error| KernelError::pattern(pattern, &error))?))
        });
        let globs: Vec<_> = globs.collect::<Result<_, KernelError>>()?;
        let (tracefs, all) = available()?;
        for (text, _, glob) in &globs {
            if !all.lines().any(|name| glob.matches_str(name)) {
                let nearest = nearest_names(text, all.lines());
                return Err(KernelError::Unknown((*text).to_owned(), nearest));
            }
        }
        let matches = |name: &str, excluded: bool| {
            globs.iter().any(|(_, excludes, glob)| *excludes == excluded && glob.matches_str(name))
        };
        let mut names: Vec<_> = all.lines().filter(|name| matches(name, false) && !matches(name, true)).collect();
        names.sort_unstable();
        let format = |name: &&str| {
            let path = tracefs.join("events").join(name.replacen(':', "/", 1)).join("format");
            let text = fs::read_to_string(&path).map_err(|source| KernelError::Read(path, source))?;
            let format = EventFormat::parse(&text);
            let format = format.map_err(|source| KernelError::Format((*name).to_owned(), source))?;
            Ok(((*name).to_owned(), format))
        };
        Ok(Self(names.iter().map(format).collect::<Result<_, KernelError>>()?))
    }

    /// Returns their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Returns the mount point of tracefs, and the names of all events, one per line.
fn available() -> Result<(&'static Path, String), KernelError> {
    for place in PLACES {
        let path = PathBuf::from(place).join("available_events");
        match fs::read_to_string(&path) {
            Ok(text) => return Ok((Path::new(place), text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(KernelError::Read(path, source)),
        }
    }
    Err(KernelError::NotMounted)
}

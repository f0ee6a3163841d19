//! The notes that a verb works on: those of a file, or of all files that a process has mapped as code.

use crate::failure::Failure;
use crate::message;
use clap::Args;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tracepoint_reader::usdt::{Note, notes_of_file};

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Source {
    /// A program or a shared object
    #[arg(value_name = "FILE")]
    path: Option<PathBuf>,
    /// A process: its program, and the shared objects that it has loaded
    #[arg(short, long, value_name = "PID")]
    pub(super) pid: Option<u32>,
}

#[derive(Debug)]
pub(super) struct NotedFile {
    pub(super) path: PathBuf,
    pub(super) notes: Vec<Note>,
}

impl Source {
    /// The files with notes of this project, or with any notes if `all`.
    pub(super) fn read(&self, all: bool) -> Result<Vec<NotedFile>, Failure> {
        let mut files = match (&self.path, self.pid) {
            (Some(path), _) => vec![of_file(path, path)?],
            (None, Some(pid)) => of_process(pid)?,
            (None, None) => Vec::new(),
        };
        for file in &mut files {
            file.notes.retain(|note| all || note.fields.is_some());
            file.notes.sort_by_key(Note::full_name);
        }
        files.retain(|file| !file.notes.is_empty());
        if files.is_empty() {
            let what = self
                .path
                .as_ref()
                .map_or_else(|| format!("process {}", self.pid.unwrap_or_default()), |path| path.display().to_string());
            return Err(Failure::Refused(format!(
                "{what} has no notes for other tools: build the program with the feature `usdt` of `tracepoint`"
            )));
        }
        Ok(files)
    }
}

/// The notes of the file at `opened`, which messages call `path`.
fn of_file(path: &Path, opened: &Path) -> Result<NotedFile, Failure> {
    let notes = notes_of_file(opened).map_err(|error| Failure::Refused(error.to_string()))?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(NotedFile { path, notes })
}

fn of_process(pid: u32) -> Result<Vec<NotedFile>, Failure> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let maps = fs::read(process.join("maps"))
        .map_err(|error| Failure::Refused(format!("cannot read the mappings of process {pid}: {error}")))?;
    let maps = String::from_utf8_lossy(&maps);
    let mapped: BTreeSet<&str> = maps.lines().filter_map(code).collect();
    let mut files = Vec::new();
    for path in mapped {
        // The path in the mount namespace of that process, which may be in a container.
        let opened = process.join("root").join(path.trim_start_matches('/'));
        match of_file(path.as_ref(), &opened) {
            Ok(file) => files.push(file),
            Err(error) => message::note(&error.to_string()),
        }
    }
    Ok(files)
}

/// The file behind a line of `/proc/PID/maps` that maps code.
fn code(line: &str) -> Option<&str> {
    let path = &line[line.find('/')?..];
    let is_code = line.split(' ').nth(1)?.contains('x');
    is_code.then_some(path)
}

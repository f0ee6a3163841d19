//! Reads the headers of all rings of a process before they are recovered.

use super::RecoverError;
use super::outputs::Outputs;
use super::process_source::{ProcessSource, RingPlace};
use crate::error::ReadError;
use crate::metadata::{EnvValue, Metadata};
use crate::ring::{Ring, Side};
use crate::take::{Journal, check_layout};
use std::collections::BTreeMap;

/// The rings of a process, and the identity of the process according to them.
pub(super) struct Survey {
    pub(super) uuid: [u8; 16],
    pub(super) pid: u32,
    /// The process named in the metadata.
    described: Option<i128>,
    pub(super) session: String,
    /// True if the process is running and writes to its rings while they are read.
    pub(super) is_running: bool,
    /// The readable rings, with the number of bytes in each and in its outputs.
    pub(super) rings: Vec<(RingPlace, u64)>,
    pub(super) bytes: u64,
}

impl Survey {
    /// Reads the headers of all rings. Unreadable ones are reported; fails if all are unreadable.
    pub(super) fn of(
        source: ProcessSource<'_>,
        metadata: &Metadata,
        outputs: &Outputs,
        journal: &mut Journal,
    ) -> Result<Self, RecoverError> {
        let directory = source.path();
        let no_uuid = || ReadError::Metadata {
            path: directory.join("metadata"),
            line: 0,
            offset: 0,
            reason: "the trace has no uuid: a tracepoint did not write this".to_owned(),
        };
        let uuid = metadata.uuid().ok_or_else(no_uuid)?;
        let described = match metadata.env_value("vpid") {
            Some(EnvValue::Integer(pid)) => Some(*pid),
            _ => None,
        };
        let mut survey =
            Self { uuid, pid: 0, described, session: String::new(), is_running: false, rings: Vec::new(), bytes: 0 };
        let mut first_error = None;
        let made = rings_made(source, metadata, journal);
        let places = source.rings(made, |class, missing| {
            journal.wrong(format!(
                "{}: there is no ring in {class}-{missing}.ring, though the process has made it; what it held is missing",
                directory.display()
            ));
        })?;
        for place in places {
            match place.open() {
                // Its process was killed before it completed the ring: nothing was in it.
                Ok(None) => {}
                Ok(Some(ring)) => match survey.check(metadata, &ring) {
                    Ok(()) => survey.add(source, place, &ring, outputs, journal),
                    Err(error) => {
                        journal.wrong(format!("{error}; not used"));
                        first_error.get_or_insert(error);
                    }
                },
                Err(error) => {
                    journal.wrong(format!("{error}; not used"));
                    first_error.get_or_insert(error);
                }
            }
        }
        if survey.rings.is_empty() && !outputs.streams(metadata, uuid).is_empty() {
            journal.wrong(format!("{}: no ring of the process can be read", directory.display()));
            survey.pid = described.and_then(|pid| pid.try_into().ok()).unwrap_or(0);
            if let Some(EnvValue::String(name)) = metadata.env_value("trace_name") {
                survey.session.clone_from(name);
            }
            return Ok(survey);
        }
        match first_error {
            Some(error) if survey.rings.is_empty() => Err(error.into()),
            _ if survey.rings.is_empty() => Err(RecoverError::NoRings {
                path: directory.to_owned(),
                reason: "the process had not begun to record".to_owned(),
            }),
            _ => Ok(survey),
        }
    }

    /// Checks that a ring belongs to the metadata.
    fn check(&self, metadata: &Metadata, ring: &Ring) -> Result<(), ReadError> {
        let wrong = |offset, reason| ReadError::Ring { path: ring.path().to_owned(), offset, reason };
        if ring.uuid() != self.uuid {
            return Err(wrong(24, "the ring belongs to another trace than the metadata beside it".to_owned()));
        }
        check_layout(metadata, self.uuid, ring.class())
            .map_err(|reason| wrong(40, format!("with the metadata beside it: {reason}")))
    }

    fn add(
        &mut self,
        source: ProcessSource<'_>,
        place: RingPlace,
        ring: &Ring,
        outputs: &Outputs,
        journal: &mut Journal,
    ) {
        let kept = Side::ALL.iter().map(|side| outputs.length(&file_name(ring, *side)));
        let bytes = kept.fold(ring.length(), u64::saturating_add);
        if self.rings.is_empty() {
            self.introduce(source, ring, journal);
        }
        let found = ring.identity().pid;
        let pid = self.described.unwrap_or(self.pid.into());
        if pid != i128::from(found) {
            let path = ring.path().display();
            journal.wrong(format!(
                "{path}: byte 1024: the ring belongs to process {found}, and the files beside it to {pid}"
            ));
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.rings.push((place, bytes));
    }

    /// Takes process and session from the first ring.
    fn introduce(&mut self, source: ProcessSource<'_>, ring: &Ring, journal: &mut Journal) {
        let identity = ring.identity();
        // The metadata takes precedence: the account is verified against it.
        self.pid = self.described.and_then(|pid| pid.try_into().ok()).unwrap_or(identity.pid);
        self.session.clone_from(&identity.session);
        self.is_running = source.is_recording(identity);
        if self.is_running {
            let pid = identity.pid;
            journal.note(format!("process {pid} is running: this is what it had committed when it was looked at"));
        }
    }
}

/// The number of rings that each channel has made, by stream class. The files of threads without a ring, which are made first, contain it. It is read
/// before the rings are looked for, so that a running process has already made all of them (H2, with the Release store of the number).
fn rings_made(source: ProcessSource<'_>, metadata: &Metadata, journal: &mut Journal) -> BTreeMap<u32, u64> {
    let mut made = BTreeMap::new();
    let ProcessSource::Directory(directory) = source else { return made };
    for class in metadata.streams() {
        let path = directory.join(format!("{}-orphans.ring", class.id));
        match Ring::open(&path) {
            Ok(Some(ring)) if ring.is_ringless() => drop(made.insert(ring.class(), ring.rings_made().unwrap_or(0))),
            Ok(None) => journal.wrong(format!(
                "{}: empty, though its channel has begun: what threads without a ring lost, and how many rings there were, is missing",
                path.display()
            )),
            // Other faults of the file are found when it is read.
            _ => {}
        }
    }
    made
}

/// The file name of a stream, in the form of the CTF sink.
pub(super) fn file_name(ring: &Ring, side: Side) -> String {
    format!("{}_{}", ring.identity().channel, ring.instance(side))
}

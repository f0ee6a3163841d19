//! The caps on the bandwidth of senders: token buckets in mapped files. One is in the run directory, shared by all senders of its
//! processes. The directory of each session whose streams have a cap has another, shared by the processes of the session.
//!
//! The first 24 bytes of a file are the words of a [`Bucket`]. They are changed by atomic instructions only, so no lock has to be released
//! when a process dies. Truncating the file does not end a program, because the mapping is guarded: the bucket then has no limit for that
//! process.

use crate::layout::BANDWIDTH;
use crate::private_dir::{DirError, PrivateDir};
use crate::ring_files::map_bucket;
use crate::rundir::RunDir;
use std::io;
use tracepoint_sinks::{Bucket, Sink};

/// The size of a file in bytes: a page.
const SIZE: usize = 4096;

/// The bandwidth of the senders of a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BandwidthUse {
    /// The cap in bytes per second; `None` for no limit.
    pub rate: Option<u64>,
    /// The bytes that all senders have sent since the file was created. The difference of two readings gives the current rate.
    pub sent: u64,
}

/// The buckets shared by a sender of a session.
#[derive(Clone, Debug)]
pub struct Buckets {
    session: Option<Bucket>,
    run_dir: Option<Bucket>,
}

impl Buckets {
    /// Applies the caps to a sink that sends over a network. `session` is the directory of its session, if the session is shared with other
    /// processes.
    pub fn share(sink: &mut dyn Sink, session: Option<&PrivateDir>) -> io::Result<()> {
        let Some(max) = sink.extension().and_then(|sink| Some(sink.bandwidth()?.max())) else { return Ok(()) };
        let session = session.filter(|_| max.is_some());
        let buckets = match RunDir::of_traced_process() {
            Ok(run_dir) => Self::open(session, run_dir.dir())?,
            // A run directory whose owner may not control this process does not limit it either.
            Err(error) if error.is_for_rights() => Self { session: session.map(open).transpose()?, run_dir: None },
            Err(error) => return Err(io::Error::other(error)),
        };
        buckets.apply(sink);
        Ok(())
    }

    /// Opens the buckets in these directories.
    pub fn open(session: Option<&PrivateDir>, run_dir: &PrivateDir) -> io::Result<Self> {
        Ok(Self { session: session.map(open).transpose()?, run_dir: Some(open(run_dir)?) })
    }

    /// Applies these caps to a sink that sends over a network.
    pub fn apply(&self, sink: &mut dyn Sink) {
        if let Some(bandwidth) = sink.extension().and_then(|sink| sink.bandwidth()) {
            bandwidth.share(self.session.clone(), self.run_dir.clone());
        }
    }
}

/// Reads the cap of a run directory, and its use.
pub fn read(run_dir: &PrivateDir) -> Result<BandwidthUse, DirError> {
    if run_dir.file_len(BANDWIDTH).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(BandwidthUse { rate: None, sent: 0 });
    }
    let bucket = open(run_dir).map_err(|error| run_dir.failed("open", BANDWIDTH, error))?;
    Ok(BandwidthUse { rate: bucket.rate(), sent: bucket.charged() })
}

/// Sets the cap of a run directory.
pub fn set(run_dir: &PrivateDir, rate: Option<u64>) -> Result<(), DirError> {
    let bucket = open(run_dir).map_err(|error| run_dir.failed("open", BANDWIDTH, error))?;
    bucket.set_rate(rate);
    Ok(())
}

/// Opens the bucket in a directory, and creates it if it does not exist: senders and controllers may come in any order.
pub fn open(dir: &PrivateDir) -> io::Result<Bucket> {
    map_bucket(&*dir.open_allocated(BANDWIDTH, SIZE as u64)?, SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    const CHILD: &str = "TRACEPOINT_TEST_BUCKET";

    fn now() -> u64 {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }

    #[test]
    fn processes_share_a_bucket_by_its_file() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let dir = PrivateDir::at(&place.path().join("run"))?;
        assert_eq!(read(&dir)?, BandwidthUse { rate: None, sent: 0 });
        assert!(!place.path().join("run/bandwidth").exists(), "reading makes no file");
        let sender = open(&dir)?;
        assert_eq!(
            sender.reserve(5, now(), Duration::ZERO, now()).map(|_| read(&dir)).transpose()?.map(|now| now.sent),
            Some(5)
        );
        set(&dir, Some(1000))?;
        assert_eq!((sender.rate(), read(&dir)?.rate), (Some(1000), Some(1000)));
        set(&dir, None)?;
        assert_eq!(sender.rate(), None);
        // A truncated file does not end the program.
        std::fs::File::options().write(true).open(place.path().join("run/bandwidth"))?.set_len(0)?;
        assert_eq!((sender.rate(), sender.charged()), (None, 0));
        Ok(())
    }

    /// Senders that do nothing but reserve are killed, and so at any instruction of the reservation.
    #[test]
    fn a_killed_sender_holds_up_no_other() -> Result<(), Box<dyn std::error::Error>> {
        if let Some(dir) = std::env::var_os(CHILD) {
            let bucket = open(&PrivateDir::open(dir.as_ref())?)?;
            println!("ready");
            loop {
                let _ = bucket.reserve(10, now(), Duration::ZERO, now());
            }
        }
        let place = tempfile::tempdir()?;
        let dir = PrivateDir::at(&place.path().join("run"))?;
        let bucket = open(&dir)?;
        bucket.set_rate(Some(1 << 30));
        for kill in 0..60 {
            let mut child = Command::new(std::env::current_exe()?)
                .args(["--exact", "bandwidth::tests::a_killed_sender_holds_up_no_other", "--nocapture"])
                .env(CHILD, dir.path())
                .stdout(Stdio::piped())
                .spawn()?;
            let (mut out, mut text) = (child.stdout.take().ok_or("no output")?, String::new());
            while !text.contains("ready") {
                let mut bytes = [0; 64];
                let count = out.read(&mut bytes)?;
                assert!(count > 0, "{text}");
                text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            let before = bucket.charged();
            while bucket.charged() < before + 1000 + kill * 37 {
                std::thread::yield_now();
            }
            child.kill()?;
            child.wait()?;
            let (charged, now) = (bucket.charged(), now());
            assert_eq!(
                bucket.reserve(10, now, Duration::ZERO, now),
                Some(now),
                "the time of one slice at most is taken"
            );
            assert_eq!(bucket.charged(), charged + 10);
        }
        Ok(())
    }
}

//! The files that a session creates next to its rings; none of them is left when it ends.

use crate::common::{Outcome, again, memory_place, names, part, process_dirs};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tracepoint_run_dir::Notice;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "kept";
    pub seen(n: u64) { n: u64 = n }
}

fn session(sink: CtfSink) -> SessionBuilder {
    Session::builder("kept").events("kept:*").channel(Channel::discard(64 << 10).name("net").spares(2)).sink(sink)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// Returns the name of this process: `PID-START`.
fn own_name() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("proc is mounted");
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    format!("{}-{}", std::process::id(), fields[19])
}

#[test]
fn the_directory_of_a_process_has_rings_metadata_and_outputs() -> Outcome {
    own_process!();
    let place = memory_place();
    let (dir, trace) = (place.path().join("a/session"), place.path().join("trace"));
    let session = session(CtfSink::create(&trace)?).dir(&dir).start()?;
    tracepoint::trace!(seen(1));
    let own = dir.join("rings").join(own_name());
    assert_eq!(process_dirs(&dir), [own.as_path()]);
    for path in [&dir, &dir.join("rings"), &own] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    assert_eq!(std::fs::read_to_string(own.join("outputs"))?, format!("ctf {}\n", trace.display()));
    assert_eq!(std::fs::read(own.join("metadata"))?, std::fs::read(trace.join("metadata"))?);
    let description = std::fs::read_to_string(own.join("session.toml"))?;
    assert!(description.contains("kept:*"), "others know what the session records: {description}");
    // Spare rings are created meanwhile.
    let is_ring = |name: &String| Path::new(name).extension().is_some_and(|extension| extension == "ring");
    let (rings, others): (Vec<_>, Vec<_>) = names(&own).into_iter().partition(is_ring);
    assert_eq!(others, ["alive", "metadata", "outputs", "session.toml"]);
    for (name, size) in [("0-0.ring", 64 << 10), ("0-1.ring", 64 << 10), ("0-orphans.ring", 4096)] {
        let path = own.join(name);
        assert!(rings.iter().any(|ring| ring == name), "{rings:?}");
        assert_eq!(mode(&path), 0o600);
        let ring = std::fs::read(&path)?;
        assert!(ring.len() >= size, "{name}: {}", ring.len());
        assert!(ring.starts_with(b"tp-ring\n"), "{name}");
        check_identity(&ring, &own)?;
    }
    session.stop()?;
    assert_eq!(names(&dir), Vec::<String>::new());
    Ok(())
}

fn check_identity(ring: &[u8], own: &Path) -> Outcome {
    let number = |at: usize| u64::from_le_bytes(ring[at..at + 8].try_into().expect("eight bytes"));
    let text = |at: usize| {
        let len = usize::from(u16::from_le_bytes([ring[at], ring[at + 1]]));
        String::from_utf8_lossy(&ring[at + 2..at + 2 + len]).into_owned()
    };
    assert_eq!(format!("{}-{}", number(1024), number(1032)), own_name());
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().replace('-', "");
    let first_half = u64::from_be_bytes(ring[1040..1048].try_into()?);
    let second_half = u64::from_be_bytes(ring[1048..1056].try_into()?);
    assert_eq!(format!("{first_half:016x}{second_half:016x}"), boot);
    let namespace = std::fs::read_link("/proc/self/ns/pid")?;
    assert_eq!(namespace.to_str(), Some(format!("pid:[{}]", number(1056)).as_str()));
    assert_eq!(text(1088), std::env::current_exe()?.to_string_lossy());
    assert_eq!(text(2112), std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim());
    assert_eq!((text(2368), text(3648)), ("kept".to_owned(), "net".to_owned()));
    assert_eq!(Path::new(&text(2624)), own.join("metadata"));
    Ok(())
}

/// Two sessions of one name in one process do not conflict.
#[test]
fn a_second_recording_has_a_directory_of_its_own() -> Outcome {
    own_process!();
    let place = memory_place();
    let (dir, name) = (place.path().join("session"), own_name());
    let [first, second] = ["1", "2"].map(|trace| CtfSink::create(place.path().join(trace)));
    let first = session(first?).dir(&dir).start()?;
    let second = session(second?).dir(&dir).start()?;
    assert_eq!(names(&dir.join("rings")), [name.clone(), format!("{name}-2")]);
    first.stop()?;
    assert_eq!(names(&dir.join("rings")), [format!("{name}-2")]);
    drop(second);
    assert_eq!(names(&dir), Vec::<String>::new());
    Ok(())
}

#[test]
fn a_path_with_a_line_feed_is_not_listed() -> Outcome {
    own_process!();
    let place = memory_place();
    let (dir, trace) = (place.path().join("session"), place.path().join("two\nlines"));
    let session = session(CtfSink::create(&trace)?).dir(&dir).start()?;
    assert_eq!(session.notices(), [Notice::OutputNotListed(trace)]);
    assert!(session.notices()[0].to_string().contains("two\\nlines"), "{}", session.notices()[0]);
    assert_eq!(std::fs::read_to_string(process_dirs(&dir)[0].join("outputs"))?, "");
    Ok(())
}

#[test]
fn rings_are_in_the_run_directory_by_default() -> Outcome {
    own_process!();
    if part() == "records" {
        let run = std::path::PathBuf::from(std::env::var_os("TRACEPOINT_RUN_DIR").ok_or("no run directory")?);
        let session = session(CtfSink::create(run.join("../trace"))?).start()?;
        let dirs = process_dirs(&run.join("sessions/kept"));
        assert_eq!(dirs, [run.join("sessions/kept/rings").join(own_name())]);
        let outputs = std::fs::read_to_string(dirs[0].join("outputs"))?;
        assert!(outputs.starts_with("ctf /") && outputs.ends_with("/trace\n"), "{outputs}");
        session.stop()?;
        assert_eq!(names(&run.join("sessions")), Vec::<String>::new());
        return Ok(());
    }
    let place = memory_place();
    let test = "rings_are_in_the_run_directory_by_default";
    let run = place.path().join("run");
    assert!(again(test, "records").env("TRACEPOINT_RUN_DIR", run).status()?.success());
    Ok(())
}

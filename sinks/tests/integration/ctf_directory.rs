//! Directories that cannot take a trace are refused with advice, and not touched.

use crate::common::{Outcome, Recording, alone, assert_balances, channel, place};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tracepoint_sinks::{CtfError, CtfSink};

tracepoint::define_trace! {
    provider = "placed";
    pub step(n: u64) { n: u64 = n }
}

fn refused(path: &std::path::Path) -> Result<CtfError, String> {
    CtfSink::create(path).err().ok_or_else(|| format!("{} was taken", path.display()))
}

#[test]
fn directories_that_are_not_empty_are_refused() -> Outcome {
    let place = place();
    let new = place.path().join("a/b/c");
    assert_eq!(CtfSink::create(&new)?.path(), new);
    assert!(CtfSink::create(&new).is_ok(), "made, but empty");

    fs::write(new.join("notes"), "mine")?;
    let error = refused(&new)?;
    assert!(matches!(error, CtfError::NotEmpty { .. }), "{error}");
    assert!(error.to_string().contains("`notes`") && error.to_string().contains("name a new directory"), "{error}");
    assert_eq!(fs::read(new.join("notes"))?, b"mine");

    let file = place.path().join("file");
    fs::write(&file, "mine")?;
    for path in [file.clone(), file.join("below")] {
        let error = refused(&path)?;
        assert!(matches!(error, CtfError::NotADirectory { .. }), "{error}");
    }
    assert_eq!(fs::read(&file)?, b"mine");
    Ok(())
}

#[test]
fn a_directory_that_cannot_be_created_is_an_error() -> Outcome {
    // Not even root can create a directory there.
    let error = refused("/proc/self/trace".as_ref())?;
    assert!(matches!(error, CtfError::Io { action: "make", .. }), "{error}");

    let place = place();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o500))?;
    if let Err(error) = CtfSink::create(place.path().join("trace")) {
        assert!(error.to_string().contains("choose a place that this user may write to"), "{error}");
    } else {
        assert!(rustix::process::geteuid().is_root(), "only root may");
    }
    Ok(())
}

#[test]
fn earlier_traces_are_replaced_and_nothing_else() -> Outcome {
    let _alone = alone();
    let place = place();
    let dir = place.path().join("traces");
    let record = |sink: CtfSink, rotate: bool| -> Outcome {
        let mut recording = Recording::start(channel(), vec![Box::new(sink)])?;
        tracepoint::trace!(step(1));
        if rotate {
            recording.drain.rotate()?;
            tracepoint::trace!(step(2));
        }
        recording.finish();
        Ok(())
    };
    // A trace, one in chunks, and several below one directory.
    for (at, rotate) in [("", false), ("", true), ("one", false), ("two", true)] {
        record(CtfSink::replace(dir.join(at))?, rotate)?;
    }
    assert!(dir.join("two/chunk-000002/metadata").exists());
    record(CtfSink::create(dir.join("three"))?, false)?;
    // Anything else is left unchanged, together with all traces next to it.
    for (name, bytes) in [
        ("notes.txt", &b"mine"[..]),
        ("three/notes.txt", b"mine"),
        ("three/.account/x", b""),
        ("other/metadata", b"/* CTF 1.8 */"),
    ] {
        fs::create_dir_all(dir.join(name).parent().ok_or("no parent")?)?;
        fs::write(dir.join(name), bytes)?;
        let error = CtfSink::replace(&dir).err().ok_or("replaced")?;
        assert!(matches!(&error, CtfError::NotEmpty { found, .. } if found == name), "{error}");
        assert!(dir.join("three/metadata").exists());
        fs::remove_file(dir.join(name))?;
    }
    fs::remove_dir(dir.join("other"))?;
    std::os::unix::fs::symlink("/etc/hostname", dir.join("three/link"))?;
    assert!(matches!(CtfSink::replace(&dir), Err(CtfError::NotEmpty { .. })));
    fs::remove_file(dir.join("three/link"))?;
    record(CtfSink::replace(&dir)?, false)?;
    assert!(dir.join("metadata").exists() && !dir.join("three").exists());
    assert!(matches!(CtfSink::replace(dir.join("metadata")), Err(CtfError::NotADirectory { .. })));
    assert_balances(&dir);
    Ok(())
}

#[test]
fn dated_directories_are_new_and_in_order() -> Outcome {
    let place = place();
    let paths = [(); 3].map(|()| CtfSink::create_dated(place.path()).map(|sink| sink.path().to_owned()));
    let paths: Vec<_> = paths.into_iter().collect::<Result<_, _>>()?;
    assert!(paths.is_sorted(), "{paths:?}");
    let names: Vec<_> = paths.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy()).collect();
    for (index, name) in names.iter().enumerate() {
        let digits = name.bytes().take(16).filter(u8::is_ascii_digit).count();
        assert!(digits == 14 && name.as_bytes()[8] == b'T' && name.as_bytes()[15] == b'Z', "{name}");
        assert!(!names[..index].contains(name), "{names:?}");
    }
    Ok(())
}

//! Directories that cannot take a trace are refused with advice, and not touched.

use crate::common::{Outcome, place};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tracepoint_sinks::{CtfError, CtfSink};

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

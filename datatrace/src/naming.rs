//! Derives the file name of an object from its name and instance.

use crate::error::Error;

/// Maximum length of a file name in common file systems, in bytes.
const MAX_FILE_NAME: usize = 255;
/// Maximum length of a name, without the additions while the file is created: `.` before it, `.XXXXXX.new` after it.
const MAX_STEM: usize = MAX_FILE_NAME - 12;

/// `NAME.dt`, or `NAME_INSTANCE.dt`.
pub(crate) fn file_name(name: &str, instance: Option<&str>) -> Result<String, Error> {
    check(name)?;
    let Some(instance) = instance else {
        return Ok(format!("{name}.dt"));
    };
    check(instance)?;
    if name.len() + instance.len() >= MAX_STEM {
        return Err(Error::Name { name: format!("{name}_{instance}"), reason: TOO_LONG });
    }
    Ok(format!("{name}_{instance}.dt"))
}

const TOO_LONG: &str = "it is longer than a file name may be";

fn check(name: &str) -> Result<(), Error> {
    let reason = if name.is_empty() {
        "it is empty; an object without a name is made by `create_unnamed`"
    } else if name.contains('/') {
        "it is a path; the directory is chosen by `TraceOptions::directory`"
    } else if name.contains('\0') {
        "it contains a NUL"
    } else if name.len() >= MAX_STEM {
        TOO_LONG
    } else {
        return Ok(());
    };
    Err(Error::Name { name: name.to_owned(), reason })
}

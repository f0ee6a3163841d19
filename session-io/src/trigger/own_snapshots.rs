//! The snapshots that a trigger may remove: those that it took itself, with the rights of this user.
//!
//! The [state](super::state) of a trigger lists its snapshots. In a run directory that a group shares, any member can write a state, and
//! thereby list any directory. Therefore each snapshot has a file `.trigger`, created before all others, with the ids of the session and
//! the trigger. A directory is removed only if it
//!
//! * is directly in the output of a snapshot that the trigger takes, and has a name as for snapshots;
//! * belongs to this user, and no other user may write to it;
//! * contains that file, which belongs to this user as well.
//!
//! The directory stays open meanwhile, and links are not followed: another directory that replaces it is not removed.

use fileguard::ReopenableFd;
use rustix::fs::{Mode, OFlags, Stat, fstat};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tracepoint_run_dir::private_dir::Author;
use tracepoint_session_spec::{TriggerAction, TriggerSpec};

/// The file that records which trigger has taken a snapshot.
const MARK: &str = ".trigger";

/// The snapshots of a trigger.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSnapshots<'a> {
    pub(super) trigger: &'a TriggerSpec,
    /// The author of the trigger.
    pub(super) author: Author,
    /// The id of its session; for a session in code, its name and the process.
    pub(super) session: &'a str,
}

impl OwnSnapshots<'_> {
    /// Marks a new directory as a snapshot of the trigger.
    pub(super) fn mark(&self, directory: &Path) -> io::Result<()> {
        let directory: ReopenableFd<OwnedFd> = ReopenableFd::open(directory, OFlags::DIRECTORY)?;
        let mark = directory.file(MARK, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR)?;
        (&*mark).write_all(self.text().as_bytes())
    }

    /// Removes a directory listed in the state, if it is a snapshot of the trigger. Ignores errors.
    pub(super) fn remove(&self, path: &Path) {
        let (Some(output), Some(name)) = (path.parent(), path.file_name()) else { return };
        let is_in =
            |action: &TriggerAction| matches!(action, TriggerAction::Snapshot(directory) if directory == output);
        if self.author == Author::Trusted && self.trigger.actions.iter().any(is_in) && is_name(name) {
            let _ = self.remove_from(output, name);
        }
    }

    fn remove_from(&self, output: &Path, name: &OsStr) -> io::Result<()> {
        let output: ReopenableFd<OwnedFd> = ReopenableFd::open(output, OFlags::DIRECTORY)?;
        let snapshot = output.subdirectory(name)?;
        if self.has_made(&snapshot)? {
            snapshot.remove_contents()?;
            output.remove_directory(name)?;
        }
        Ok(())
    }

    fn has_made(&self, snapshot: &ReopenableFd<OwnedFd>) -> io::Result<bool> {
        if !is_own(&snapshot.at(|fd| fstat(fd))?) {
            return Ok(false);
        }
        let (mark, own) = (snapshot.file(MARK, OFlags::RDONLY, Mode::empty())?, self.text());
        let mut text = Vec::new();
        (&*mark).take(own.len() as u64 + 1).read_to_end(&mut text)?;
        Ok(is_own(&fstat(&mark)?) && text == own.as_bytes())
    }

    fn text(&self) -> String {
        format!("{}/{}\n", self.session, self.trigger.id)
    }
}

/// Returns whether it belongs to this user, and no other user may write to it.
fn is_own(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o022 == 0
}

/// Returns whether the name is one of a snapshot: `TIME`, `TIME-PID`, `TIME-PID-NUMBER`, and `.NAME.new` while it is written.
fn is_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let name = name.strip_prefix(b".").and_then(|name| name.strip_suffix(b".new")).unwrap_or(name);
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"-TZ.".contains(byte);
    name.first().is_some_and(u8::is_ascii_digit) && name.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;
    use tracepoint_session_spec::TriggerCondition;

    /// A state written by another user may list directories that are not snapshots of the trigger.
    #[test]
    fn only_snapshots_of_the_trigger_are_removed() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let output = temp.path().join("output");
        let trigger =
            |id: &str| TriggerSpec::new(TriggerCondition::CoreDump, TriggerAction::Snapshot(output.clone())).named(id);
        let (first, second) = (trigger("t1"), trigger("t2"));
        let of = |trigger, session| OwnSnapshots { trigger, author: Author::Trusted, session };
        let (own, by_other) = (of(&first, "a"), OwnSnapshots { author: Author::Other(7), ..of(&first, "a") });
        let make = |path: PathBuf| -> io::Result<PathBuf> {
            fs::create_dir_all(path.join("inner"))?;
            fs::set_permissions(&path, Permissions::from_mode(0o700))?;
            fs::write(path.join("inner/metadata"), b"text")?;
            Ok(path)
        };
        let marked = |path: PathBuf, by: &OwnSnapshots<'_>| -> io::Result<PathBuf> {
            let path = make(path)?;
            by.mark(&path)?;
            Ok(path)
        };
        let name = |number: u32| output.join(format!("2026-11-23T005317.123Z-{number}"));
        let kept = [
            make(name(1))?,
            marked(name(2), &of(&second, "a"))?,
            marked(name(3), &of(&first, "b"))?,
            marked(output.join("important"), &own)?,
            marked(temp.path().join("2026-11-23T005317.123Z"), &own)?,
            marked(name(4), &own)?,
            output.clone(),
            output.join(".."),
        ];
        fs::set_permissions(&kept[5], Permissions::from_mode(0o770))?;
        symlink(&kept[3], name(5))?;
        let linked = make(name(6))?;
        symlink(kept[3].join(MARK), linked.join(MARK))?;
        for path in kept.iter().chain([&name(5), &linked]) {
            own.remove(path);
            assert!(path.symlink_metadata().is_ok(), "{}", path.display());
            assert!(path.join("inner/metadata").exists() || path.join("important").exists() || path.ends_with(".."));
        }
        for path in [name(7), output.join(".2026-11-23T005317.123Z.new")] {
            let path = marked(path, &own)?;
            symlink(&kept[0], path.join("inner/link"))?;
            by_other.remove(&path);
            assert!(path.exists());
            own.remove(&path);
            assert!(!path.exists() && kept[0].join("inner/metadata").exists(), "{}", path.display());
        }
        Ok(())
    }
}

//! The setting of these tests: the program with its rights, and the users who try to control it.

use super::told::Told;
use super::{GROUP, OTHER, SHADOW, USER};
use crate::common::{Outcome, names};
use rustix::fs::{FlockOperation, StatVfsMountFlags, flock, statvfs};
use std::env;
use std::error::Error;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The test by which the processes enter this program.
const ENTRY: &str = "rights::matrix::a_process_with_more_rights_offers_no_control";

/// The common setting of these tests.
pub(super) struct Place {
    pub(super) temp: TempDir,
    program: PathBuf,
    pub(super) controllers: Vec<(&'static str, Told)>,
    /// The lock.
    _only: File,
}

impl Place {
    pub(super) fn new() -> Result<Self, Box<dyn Error>> {
        assert!(rustix::process::geteuid().is_root(), "this test plays several users: run it as root");
        let temp = tempfile::tempdir()?;
        let flags = statvfs(temp.path())?.f_flag;
        let text = "programs have no rights of their own there (nosuid): name another directory in TMPDIR";
        assert!(!flags.contains(StatVfsMountFlags::NOSUID), "{}: {text}", temp.path().display());
        fs::set_permissions(temp.path(), Permissions::from_mode(0o755))?;
        let program = temp.path().join("program");
        fs::copy(env::current_exe()?, &program)?;
        // These users have one run directory each, and several tests.
        let only = File::open(env::current_exe()?)?;
        flock(&only, FlockOperation::LockExclusive)?;
        let mut place = Self { temp, program, controllers: Vec::new(), _only: only };
        place.attribute(&[])?;
        for (who, user, options) in [
            ("its user", USER, "--clear-groups"),
            ("another user", OTHER, "--clear-groups"),
            ("a member", OTHER, "--groups=64210"),
            ("root", 0, "--clear-groups"),
        ] {
            let mut command = place.as_user(user, user, &[options], "controller");
            if who == "a member" {
                place.share(&mut command);
            }
            let told = Told::start(&mut command, &place.temp.path().join(format!("{who}.txt")))?;
            place.controllers.push((who, told));
        }
        place.clean();
        // As created by a login.
        for user in [USER, OTHER] {
            fs::create_dir(run_dir_of(user))?;
            fs::set_permissions(run_dir_of(user), Permissions::from_mode(0o700))?;
            chown(run_dir_of(user), Some(user), Some(user))?;
        }
        fs::create_dir(place.shared())?;
        fs::set_permissions(place.shared(), Permissions::from_mode(0o1777))?;
        Ok(place)
    }

    pub(super) fn clean(&self) {
        for user in [USER, OTHER] {
            let _ = fs::remove_dir_all(run_dir_of(user));
        }
        let _ = fs::remove_dir_all(self.shared());
    }

    /// Returns the directory for the group's run directory and for outputs: in memory, regardless of the disk's contents.
    pub(super) fn shared(&self) -> PathBuf {
        Path::new("/dev/shm").join(self.temp.path().file_name().unwrap_or_default())
    }

    pub(super) fn share(&self, command: &mut Command) {
        command.env("TRACEPOINT_GROUP", GROUP.to_string()).env("TRACEPOINT_RUN_DIR", self.shared().join("run"));
    }

    /// Returns the command that runs the program in this part as that user, started by `setpriv`.
    pub(super) fn as_user(&self, user: u32, group: u32, options: &[&str], part: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={group}")]).args(options).arg(&self.program);
        Self::in_part(command, part)
    }

    /// Returns the command that runs the program in this part, started by `capsh` with these options.
    pub(super) fn by_capsh(&self, options: &[&str], part: &str) -> Command {
        let mut command = Command::new("capsh");
        command.args(options).arg(format!("--shell={}", self.program.display())).arg("--");
        Self::in_part(command, part)
    }

    fn in_part(mut command: Command, part: &str) -> Command {
        command.args(["--exact", ENTRY, "--quiet", "--nocapture"]).env("TEST_PART", part);
        for variable in ["TRACEPOINT_RUN_DIR", "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TRACEPOINT_GROUP"] {
            command.env_remove(variable);
        }
        command
    }

    /// Gives the program the rights in `options`: a capability, or a mode and an owner. Without options, it has none.
    pub(super) fn attribute(&self, options: &[&str]) -> Outcome {
        chown(&self.program, Some(0), Some(0))?;
        fs::set_permissions(&self.program, Permissions::from_mode(0o755))?;
        match *options {
            [capability] => {
                let set = Command::new("setcap").arg(capability).arg(&self.program).status();
                assert!(
                    set.is_ok_and(|status| status.success()),
                    "setcap (libcap2-bin, see scripts/setup.sh): {capability}"
                );
            }
            [mode, user, group] => {
                chown(&self.program, Some(user.parse()?), Some(group.parse()?))?;
                fs::set_permissions(&self.program, Permissions::from_mode(u32::from_str_radix(mode, 8)?))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes all of them try to control the process, and compares the results with the expected ones. No file must appear in `protected`.
    pub(super) fn judge(&mut self, what: &str, target: &Told, whos: &[&str], expected: &[&str]) -> Outcome {
        for (who, word) in whos.iter().zip(expected) {
            let out = self.shared().join("out");
            let _ = fs::remove_dir_all(&out);
            fs::create_dir(&out)?;
            // Where control is refused, only a target with more rights could open the directory.
            let mode = if *word == "controlled" { 0o777 } else { 0o775 };
            chown(&out, Some(0), Some(SHADOW))?;
            fs::set_permissions(&out, Permissions::from_mode(mode))?;
            let controller = self.controllers.iter_mut().find(|(name, _)| name == who).ok_or("nobody")?;
            let said = controller.1.tell(&format!("{} {}", target.child.id(), out.display()))?;
            assert!(said.contains(word), "{what}, {who}: {said}; expected: {word}; {}", target.said());
            if *word != "controlled" {
                assert_eq!(names(&out), [""; 0], "{what}, {who}: files with the rights of the process");
            }
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.controllers.clear();
        self.clean();
    }
}

pub(super) fn run_dir_of(user: u32) -> PathBuf {
    format!("/dev/shm/tracepoint-{user}").into()
}

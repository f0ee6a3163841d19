//! `--user`: root controls the processes of another user. These tests need root.

use super::{Outcome, TRACED, Traced, is_traced};
use std::env;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const USER: u32 = 65_532;

/// Runs `tracectl` with this run directory.
fn tracectl(run_dir: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_tracectl")).args(arguments).env("TRACEPOINT_RUN_DIR", run_dir).output()
}

/// Creates a directory that belongs to the user.
fn make(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    chown(path, Some(USER), Some(USER))
}

/// Starts a copy of this program that the user can execute, as a traced process of the user.
fn start(temp: &Path, run_dir: &Path, test: &str) -> Result<Traced, Box<dyn std::error::Error>> {
    let program = temp.join("program");
    fs::copy(env::current_exe()?, &program)?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--clear-groups".to_owned()]).arg(program);
    command.args(["--exact", test, "--quiet", "--nocapture"]).env(TRACED, "0").env("TRACEPOINT_RUN_DIR", run_dir);
    let mut child = Traced(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let out = child.0.stdout.take().ok_or("no output")?;
    let ready = BufReader::new(out).lines().map_while(Result::ok).any(|line| line.contains("ready"));
    assert!(ready, "the program has an agent");
    Ok(child)
}

#[test]
fn root_controls_processes_of_another_user() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let user = USER.to_string();
    let temp = tempfile::tempdir_in("/dev/shm")?;
    assert_eq!(fs::metadata(temp.path())?.uid(), 0, "this test plays several users: run it as root");
    fs::set_permissions(temp.path(), Permissions::from_mode(0o755))?;
    let (run_dir, own) = (temp.path().join("run"), temp.path().join("own"));
    make(&run_dir)?;
    make(&own)?;
    let child = start(temp.path(), &run_dir, "other_users::root_controls_processes_of_another_user")?;
    let pid = child.0.id().to_string();

    // Without the option, root does not touch files of another user.
    let refused = tracectl(&run_dir, &["list"])?;
    let message = String::from_utf8(refused.stderr)?;
    assert!(refused.status.code() == Some(3) && message.contains("belongs to user 65532"), "{message}");
    assert!(message.contains("`tracectl --user 65532`"), "{message}");
    let refused = tracectl(&run_dir, &["record", "-p", &pid, "-e", "*"])?;
    let message = String::from_utf8(refused.stderr)?;
    assert!(refused.status.code() == Some(3) && message.contains("`tracectl --user 65532`"), "{message}");

    let listed = tracectl(&run_dir, &["--user", &user, "list"])?;
    let out = String::from_utf8(listed.stdout)?;
    assert!(out.contains(&pid) && out.contains("shop:paid"), "{out}");
    let dir = own.join("trace");
    let path = dir.to_string_lossy().into_owned();
    let recorded =
        tracectl(&run_dir, &["record", "-e", "shop:paid", "--duration", "200ms", "-o", &path, "--user", &user])?;
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    assert_eq!(fs::metadata(&dir)?.uid(), 0, "what it writes is root's");
    let viewed = tracectl(&run_dir, &["view", &path])?;
    assert!(String::from_utf8(viewed.stdout)?.contains("shop:paid"));

    // Into a directory where only root may write.
    let elsewhere = temp.path().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o700))?;
    let path = elsewhere.join("trace").to_string_lossy().into_owned();
    let arguments = ["record", "--user", &user, "-p", &pid, "--duration", "200ms", "-o", &path];
    let recorded = tracectl(&run_dir, &arguments)?;
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    assert!(tracectl(&run_dir, &["verify", &path])?.status.success());
    for entry in fs::read_dir(&path)?.flatten() {
        assert_eq!(entry.metadata()?.uid(), 0);
    }
    // Files in the run directory belong to the user, and none is left.
    assert_eq!(fs::read_dir(run_dir.join("sessions"))?.count(), 0);

    // A command, and the output of its recording, have the rights of the user only.
    let path = elsewhere.join("no").to_string_lossy().into_owned();
    let command = ["record", "--user", &user, "-o", &path, "--", "true"];
    let refused = tracectl(&run_dir, &command)?;
    let message = String::from_utf8(refused.stderr)?;
    assert!(refused.status.code() == Some(3) && message.contains("cannot create"), "{message}");
    let nobody = tracectl(&run_dir, &["--user", "no such user", "list"])?;
    assert!(String::from_utf8(nobody.stderr)?.contains("there is no user no such user"));
    Ok(())
}

//! `--user`: root controls the processes of another user with the rights of that user; the output of `record` is written by root.

use crate::argument_error::ArgumentError;
use crate::failure::Failure;
use crate::{Arguments, Verb};
use rustix::process::geteuid;
use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use tracepoint_run_dir::Rights;
use tracepoint_run_dir::users::User;

/// The option of `Arguments`.
const OPTION: &str = "--user";

/// The hidden option of a command that stays root and acts as this user on the user's files: user and group, by number.
pub(crate) const BESIDE: &str = "beside-root";

/// Applies the options of this module: acts as the user, if one is given, and returns the arguments otherwise.
pub(crate) fn changed(mut arguments: Arguments) -> Result<Arguments, Failure> {
    let Arguments { user, beside_root, verb, .. } = &mut arguments;
    if let Verb::Record(record) = verb
        && user.is_some()
        && record.is_on_hosts()
    {
        let text = "`--user` does not apply to hosts of `--on`; name the user there: `--on USER@HOST`";
        return Err(Failure::Usage(text.to_owned()));
    }
    if let Some(user) = user {
        let stays_root = matches!(verb, Verb::Record(record) if !record.starts_a_command());
        match become_user(user, stays_root)? {}
    }
    if let (Verb::Record(record), Some((user, group))) = (verb, *beside_root) {
        record.rights = Rights::beside_root(user, group)?;
    }
    Ok(arguments)
}

/// Re-executes this command without `--user`, with the rights of the user and the user's group only: its files belong to the user, and
/// it cannot read files reserved for root. If it `stays_root`, it acts as the user only when it accesses the user's processes. Returns
/// only on failure.
fn become_user(name: &str, stays_root: bool) -> Result<Infallible, Failure> {
    if !geteuid().is_root() {
        return Err(Failure::Refused(format!(
            "only root can use {OPTION}: leave it out, or run the command with `sudo`"
        )));
    }
    let (uid, gid) = find(name)?;
    // The user may lack the right to search the directories of the program's path.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(env::args_os().next().unwrap_or_default());
    if stays_root {
        command.arg(format!("--{BESIDE}={uid}:{gid}"));
    } else {
        command.uid(uid).gid(gid);
    }
    command.args(without_option(env::args_os().skip(1))).env_remove("RUNTIME_DIRECTORY").env_remove("XDG_STATE_HOME");
    // Root's directories are not the user's.
    let runtime = PathBuf::from(format!("/run/user/{uid}"));
    if runtime.is_dir() {
        command.env("XDG_RUNTIME_DIR", &runtime);
    } else {
        command.env_remove("XDG_RUNTIME_DIR");
    }
    let error = command.exec();
    Err(Failure::Refused(format!("cannot become user {name}: {error}")))
}

/// Parses the value of the hidden option.
pub(crate) fn beside(text: &str) -> Result<(u32, u32), ArgumentError> {
    let numbers = text.split_once(':').and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    numbers.ok_or_else(|| "expected USER:GROUP, as numbers".into())
}

/// The numbers of a user and of the user's group.
fn find(name: &str) -> Result<(u32, u32), Failure> {
    let failed = |error| Failure::Refused(format!("cannot look up the user {name}: {error}"));
    let number = name.parse().ok();
    let user = match User::by_name(name).map_err(failed)? {
        None => number.map(User::by_id).transpose().map_err(failed)?.flatten(),
        user => user,
    };
    // In a container, users often have no entry.
    let numbers = user.map(|user| (user.uid, user.gid)).or(number.zip(number));
    numbers.ok_or_else(|| {
        Failure::Refused(format!("there is no user {name}: give a name that this system has, or a number"))
    })
}

/// The arguments without the option and its value. Arguments after `--` belong to the command of `record`.
fn without_option(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            kept.push(argument);
            kept.extend(arguments);
            break;
        }
        if argument == OPTION {
            arguments.next();
        } else if !argument.as_bytes().starts_with(b"--user=") {
            kept.push(argument);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn without_option_removes_only_the_option() {
        let kept = |text: &str| without_option(text.split(' ').map(OsString::from)).join(OsStr::new(" "));
        assert_eq!(kept("--user nobody list --json"), "list --json");
        assert_eq!(kept("list --user=65534 -p 1"), "list -p 1");
        assert_eq!(kept("record -e a:b --user 7 -- ./x --user y"), "record -e a:b -- ./x --user y");
    }

    #[test]
    fn users_are_found_by_name_and_by_number() {
        assert_eq!(find("root").expect("there is one"), (0, 0));
        assert_eq!(find("0").expect("there is one"), (0, 0));
        assert_eq!(find("4000000000").expect("a number"), (4_000_000_000, 4_000_000_000));
        assert!(find("nobody at all").expect_err("there is none").to_string().contains("there is no user"));
    }
}

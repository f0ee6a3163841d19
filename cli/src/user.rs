//! Being another user: root controls the processes of others as these users. What it records of them it writes as itself.

use crate::failure::Failure;
use nix::unistd::{Uid, User};
use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The option, as `Arguments` has it.
const OPTION: &str = "--user";

/// The hidden option of a command that is root's, and this user where the user's files are: user and group, by number.
pub(crate) const BESIDE: &str = "beside-root";

/// The command once more, without the option, with the rights of this user and of its own group, and no others: what it makes is the
/// user's, and what only root may read is not read. If it `stays_root`, it is that user only where it deals with the user's processes.
/// Comes back if that cannot be.
pub(crate) fn become_user(name: &str, stays_root: bool) -> Result<Infallible, Failure> {
    if !Uid::effective().is_root() {
        return Err(Failure::Senseless(format!("only root can be another user: leave {OPTION} out, or use `sudo`")));
    }
    let (uid, gid) = find(name)?;
    // Not by its path, which the user may not be allowed to follow.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(env::args_os().next().unwrap_or_default());
    if stays_root {
        command.arg(format!("--{BESIDE}={uid}:{gid}"));
    } else {
        command.uid(uid).gid(gid);
    }
    command.args(without_option(env::args_os().skip(1))).env_remove("RUNTIME_DIRECTORY");
    // That of root is not the user's.
    let runtime = PathBuf::from(format!("/run/user/{uid}"));
    if runtime.is_dir() {
        command.env("XDG_RUNTIME_DIR", &runtime);
    } else {
        command.env_remove("XDG_RUNTIME_DIR");
    }
    let error = command.exec();
    Err(Failure::Senseless(format!("cannot become user {name}: {error}")))
}

/// Reads the value of the hidden option.
pub(crate) fn beside(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once(':').and_then(|(user, group)| Some((user.parse().ok()?, group.parse().ok()?)));
    numbers.ok_or_else(|| "expected USER:GROUP, by number".to_owned())
}

/// The numbers of a user and its group.
fn find(name: &str) -> Result<(u32, u32), Failure> {
    let failed = |errno| Failure::Senseless(format!("cannot look for user {name}: {errno}"));
    let number = name.parse().ok();
    let user = match User::from_name(name).map_err(failed)? {
        None => number.map(Uid::from_raw).map(User::from_uid).transpose().map_err(failed)?.flatten(),
        user => user,
    };
    // A container's users are often numbers alone.
    let numbers = user.map(|user| (user.uid.as_raw(), user.gid.as_raw())).or(number.zip(number));
    numbers.ok_or_else(|| Failure::Senseless(format!("there is no user {name}: name one of this system, or a number")))
}

/// The arguments without the option and its value. What stands behind `--` is a command's.
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
    fn the_option_goes_and_all_else_stays() {
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

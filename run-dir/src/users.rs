//! Users and groups: the ids of the calling thread, and the user database of the C library, which `nsswitch.conf` configures.
#![expect(unsafe_code, reason = "the user database has no safe interface, nor have saved ids")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;

/// Maximum size of an entry in bytes: a group can have many members.
const MAX_ENTRY: usize = 1 << 20;

/// A user in the database.
#[derive(Debug)]
pub struct User {
    /// Login name.
    pub name: CString,
    /// Number.
    pub uid: u32,
    /// Number of the user's own group.
    pub gid: u32,
    /// Home directory.
    pub home: PathBuf,
}

impl User {
    /// Looks up a user by name; `None` if there is none, or no database.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn by_name(name: &str) -> io::Result<Option<Self>> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        // SAFETY: `look_up` passes memory that the function may write to, and the size of the buffer; the name is NUL-terminated.
        look_up(
            |entry, buffer, size, found| unsafe { libc::getpwnam_r(name.as_ptr(), entry, buffer, size, found) },
            Self::of,
        )
    }

    /// Looks up a user by number; `None` if there is none, or no database.
    ///
    /// # Errors
    ///
    /// If the database cannot be read.
    pub fn by_id(uid: u32) -> io::Result<Option<Self>> {
        // SAFETY: as in `by_name`.
        look_up(|entry, buffer, size, found| unsafe { libc::getpwuid_r(uid, entry, buffer, size, found) }, Self::of)
    }

    fn of(entry: &libc::passwd) -> Self {
        // SAFETY: the C library has set both to null, or to NUL-terminated strings in the buffer, which outlives `entry`.
        let (name, home) = unsafe { (copied(entry.pw_name), copied(entry.pw_dir)) };
        let home = PathBuf::from(OsStr::from_bytes(home.unwrap_or_default().to_bytes()));
        Self { name: name.unwrap_or_default(), uid: entry.pw_uid, gid: entry.pw_gid, home }
    }
}

/// A group in the database.
#[derive(Debug)]
pub(crate) struct Group {
    /// Number.
    pub(crate) gid: u32,
    /// Names of the users who are in it, except those whose own group it is.
    pub(crate) members: Vec<CString>,
}

impl Group {
    /// Looks up a group by name; `None` if there is none, or no database.
    pub(crate) fn by_name(name: &str) -> io::Result<Option<Self>> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        // SAFETY: as in `User::by_name`.
        look_up(
            |entry, buffer, size, found| unsafe { libc::getgrnam_r(name.as_ptr(), entry, buffer, size, found) },
            Self::of,
        )
    }

    /// Looks up a group by number; `None` if there is none, or no database.
    pub(crate) fn by_id(gid: u32) -> io::Result<Option<Self>> {
        // SAFETY: as in `User::by_name`.
        look_up(|entry, buffer, size, found| unsafe { libc::getgrgid_r(gid, entry, buffer, size, found) }, Self::of)
    }

    fn of(entry: &libc::group) -> Self {
        let member = |number| {
            // SAFETY: the C library has set `gr_mem` to an array in the buffer, which outlives `entry`, of NUL-terminated strings and a null pointer
            // at its end; no element after that is read.
            unsafe { copied(*entry.gr_mem.add(number)) }
        };
        let members = if entry.gr_mem.is_null() { Vec::new() } else { (0..).map_while(member).collect() };
        Self { gid: entry.gr_gid, members }
    }
}

/// Copies a text of an entry; `None` if the pointer is null.
///
/// # Safety
///
/// Any other pointer is to a NUL-terminated string.
unsafe fn copied(text: *const c_char) -> Option<CString> {
    // SAFETY: the caller guarantees it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
}

/// Calls a function of the database with an increasing buffer until the entry fits, and converts the entry.
fn look_up<E, T>(
    call: impl Fn(*mut E, *mut c_char, usize, *mut *mut E) -> c_int,
    convert: impl Fn(&E) -> T,
) -> io::Result<Option<T>> {
    let mut buffer = vec![0; 1024];
    let mut entry = MaybeUninit::uninit();
    loop {
        let mut found = null_mut();
        match call(entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found) {
            // SAFETY: after a success, the pointer is null, or to `entry`, which is initialised then.
            0 => return Ok(unsafe { found.as_ref() }.map(convert)),
            libc::ERANGE if buffer.len() < MAX_ENTRY => buffer.resize(buffer.len() * 4, 0),
            libc::EINTR => {}
            // A container may have no database.
            libc::ENOENT | libc::ESRCH => return Ok(None),
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Returns the users, then the groups of the calling thread: real, effective and saved.
pub(crate) fn own_ids() -> io::Result<[[u32; 3]; 2]> {
    let ([mut real, mut effective, mut saved], [mut real_group, mut effective_group, mut saved_group]) =
        ([0; 3], [0; 3]);
    // SAFETY: the kernel writes to these locals only.
    let failed = unsafe {
        libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) != 0
            || libc::getresgid(&raw mut real_group, &raw mut effective_group, &raw mut saved_group) != 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    Ok([[real, effective, saved], [real_group, effective_group, saved_group]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name_and_by_number() -> io::Result<()> {
        let root = User::by_name("root")?.expect("an entry");
        assert_eq!((root.uid, root.gid, root.name.as_c_str()), (0, 0, c"root"));
        assert_eq!(User::by_id(0)?.map(|user| (user.name, user.home)), Some((root.name, root.home)));
        let group = Group::by_name("root")?.expect("an entry");
        assert_eq!((group.gid, Group::by_id(0)?.map(|same| same.members)), (0, Some(group.members)));
        assert!(User::by_id(3_999_999_999)?.is_none() && Group::by_id(3_999_999_999)?.is_none());
        assert!(User::by_name("nobody at all")?.is_none() && Group::by_name("no\0group")?.is_none());
        Ok(())
    }

    /// A module of the database may leave texts out.
    #[test]
    fn an_entry_without_texts_is_read() {
        // SAFETY: both have numbers and pointers, which may be zero and null.
        let (user, group) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let user = User::of(&user);
        assert_eq!((user.name.as_c_str(), user.home), (c"", PathBuf::new()));
        assert!(Group::of(&group).members.is_empty());
    }

    /// As for a group with thousands of members.
    #[test]
    fn an_entry_that_does_not_fit_gets_a_larger_buffer() {
        let call = |entry: *mut u8, _: *mut c_char, size, found: *mut *mut u8| {
            if size < 100_000 {
                return libc::ERANGE;
            }
            // SAFETY: both are valid, as for a function of the C library.
            unsafe { (*entry, *found) = (7, entry) };
            0
        };
        assert_eq!(look_up(call, |entry| *entry).expect("it fits"), Some(7));
        assert_eq!(
            look_up(|_: *mut u8, _, _, _| libc::ERANGE, |_| ()).map_err(|error| error.raw_os_error()),
            Err(Some(libc::ERANGE))
        );
    }
}

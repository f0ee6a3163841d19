//! A tree with all kinds of difficult entries.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// A tree under a temporary directory.
pub(crate) struct Tree {
    pub(crate) place: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// The file and the directory without read permission.
pub(crate) const CLOSED: [&str; 2] = ["closed file", "closed directory"];
/// Links that lead in a circle.
pub(crate) const CIRCLES: [&str; 3] = ["itself", "inner/up", "inner/deeper/to the root"];

impl Tree {
    /// Creates the tree: about 400 regular files, with sizes close to the size of a chunk, and names that text formats may handle wrongly.
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        // Other users must be able to walk it, and to write their traces next to it.
        fs::set_permissions(place.path(), Permissions::from_mode(0o777)).unwrap();
        let root = place.path().join("tree");
        for directory in ["", "empty", "inner", "inner/deeper", CLOSED[1]] {
            fs::create_dir(root.join(directory)).unwrap();
        }
        let names: [&[u8]; 12] = [
            b"new\nline",
            b"\"quotes\" and 'quotes'",
            b"back\\slash\\n",
            b"not \xff\xfe UTF-8 \xc3",
            b"\x01\x02\x1b[31m\x7f",
            b"tab\tand\rreturn",
            b"?*[a-z]{b,c}",
            b"path = \"x\", size = 1 }",
            "ünïcödé 文字 🦀".as_bytes(),
            b" ",
            b"-rf",
            &[b'n'; 255],
        ];
        for (index, name) in names.into_iter().enumerate() {
            fs::write(root.join(OsStr::from_bytes(name)), content(index, 10 + index)).unwrap();
        }
        let sizes = [0, 1, 1023, 1024, 1025, 65_535, 65_536, 65_537, 131_072, 200_000];
        for index in 0..380 {
            let directory = ["", "inner", "inner/deeper"][index % 3];
            let size = sizes[index % sizes.len()];
            fs::write(root.join(directory).join(format!("file {index}")), content(index, size)).unwrap();
        }
        fs::write(root.join(CLOSED[0]), "secret").unwrap();
        for (link, target) in CIRCLES.into_iter().zip(["itself", ".", "../.."]) {
            symlink(target, root.join(link)).unwrap();
        }
        symlink("inner/file 1", root.join("link to a file")).unwrap();
        symlink("nowhere", root.join("link to nowhere")).unwrap();
        drop(UnixListener::bind(root.join("socket")).unwrap());
        for closed in CLOSED {
            fs::set_permissions(root.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        Self { place, root }
    }

    /// A place for a trace, which does not exist yet.
    pub(crate) fn out(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // So that it can be removed.
        for closed in CLOSED {
            let _ = fs::set_permissions(self.root.join(closed), Permissions::from_mode(0o755));
        }
    }
}

/// Bytes that differ from file to file.
fn content(seed: usize, size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 31 + seed * 7 + i / 251) as u8).collect()
}

/// Returns whether the tests run as root, who can read every file.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

//! Names of the files that several processes make for one session.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Candidate names for a process's file, best first: `path` itself, which one process uses; then names next to it that contain `name`, the
/// process's name. If `path` is a directory: names inside it, made from `name` and `extension`.
pub(super) fn names(path: &Path, name: &str, extension: &str) -> impl Iterator<Item = PathBuf> {
    let is_dir = path.is_dir();
    let (dir, stem, extension) = if is_dir {
        (path.to_owned(), OsString::from(name), Some(OsString::from(extension)))
    } else {
        let mut stem = path.file_stem().unwrap_or_default().to_owned();
        stem.push("-");
        stem.push(name);
        (path.parent().unwrap_or(path).to_owned(), stem, path.extension().map(ToOwned::to_owned))
    };
    let numbered = (1_u64..).map(move |number| {
        let mut file = stem.clone();
        if number > 1 {
            file.push(format!("-{number}"));
        }
        if let Some(extension) = &extension {
            file.push(".");
            file.push(extension);
        }
        dir.join(file)
    });
    (!is_dir).then(|| path.to_owned()).into_iter().chain(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_candidate_is_the_path_itself() {
        let all = |path: &str| names(Path::new(path), "server-7-1", "dt").take(3).collect::<Vec<_>>();
        let expected = |names: [&str; 3]| names.map(PathBuf::from).to_vec();
        assert_eq!(all("/a/x.dt"), expected(["/a/x.dt", "/a/x-server-7-1.dt", "/a/x-server-7-1-2.dt"]));
        assert_eq!(all("/a/x"), expected(["/a/x", "/a/x-server-7-1", "/a/x-server-7-1-2"]));
        assert_eq!(
            all("/dev/shm"),
            expected(["/dev/shm/server-7-1.dt", "/dev/shm/server-7-1-2.dt", "/dev/shm/server-7-1-3.dt"])
        );
    }
}

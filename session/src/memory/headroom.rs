//! The memory available to a process: in its cgroup and its parents, in the file system of its rings, and in the machine.
//!
//! A process that exceeds the limit of its cgroup is killed, and other programs in the cgroup may be killed as well. Therefore rings leave
//! memory free in each of these scopes: a quarter of what would be available without the rings of this session (of all its processes), and
//! at least a sixteenth of the whole, or 2 GiB where that is less.

use std::io;
use std::path::{Path, PathBuf};
use tracepoint_run_dir::private_dir::PrivateDir;

/// Values from here on mean no limit: cgroup v1 has the largest number of pages instead of `max`.
const UNLIMITED: u64 = 1 << 60;

/// The part of a scope that rings leave in any case: one in this many.
const LEFT: u64 = 16;
/// Maximum of that part in bytes: a sixteenth of a terabyte would refuse rings where much is free.
const LEFT_MAX: u64 = 2 << 30;

/// A limit on the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryScope {
    /// Its name in messages.
    name: String,
    kind: io::ErrorKind,
    limit: u64,
    available: u64,
}

impl MemoryScope {
    /// Returns the maximum share of the session's ring bytes, `used`, that may be in this scope.
    pub(super) fn part(&self, used: u64) -> u64 {
        used.min(self.limit.saturating_sub(self.available))
    }

    /// Returns how many more bytes rings may take here; those of the session take `used` bytes already, here or elsewhere.
    pub(super) fn room(&self, used: u64) -> u64 {
        self.available.saturating_sub(self.reserve(used))
    }

    /// Returns whether as much is available here as rings leave.
    pub(super) fn leaves_enough(&self, used: u64) -> bool {
        self.available >= self.reserve(used)
    }

    /// Returns how many bytes rings leave here.
    fn reserve(&self, used: u64) -> u64 {
        (self.available.saturating_add(self.part(used)) / 4).max((self.limit / LEFT).min(LEFT_MAX))
    }

    /// Returns the same scope after this many more bytes were taken.
    pub(super) fn after(&self, taken: u64) -> Self {
        Self { available: self.available.saturating_sub(taken), ..self.clone() }
    }

    /// Returns the error of a request that exceeds the available memory; those of the session take `used` bytes.
    pub(super) fn error(&self, used: u64, what: &str) -> io::Error {
        let Self { name, kind, limit, available } = self;
        let left = self.reserve(used);
        let text = format!(
            "No space left for {what}: {name} has {available} of {limit} bytes left, of which {left} stay free for the program; raise that limit, or choose smaller or fewer {what}"
        );
        io::Error::new(*kind, text)
    }
}

/// Returns no scopes: only the limit of the session applies.
#[cfg(not(target_os = "linux"))]
pub(super) const fn scopes(_: Option<&PrivateDir>) -> Vec<MemoryScope> {
    Vec::new()
}

/// Returns the scopes that limit this process now; `dir` is on the file system of its rings.
#[cfg(target_os = "linux")]
pub(super) fn scopes(dir: Option<&PrivateDir>) -> Vec<MemoryScope> {
    let mut scopes = cgroups();
    scopes.extend(dir.and_then(file_system));
    scopes.extend(fileguard::read_to_string("/proc/meminfo").ok().and_then(|info| machine(&info)));
    scopes
}

/// Returns the memory of the machine; `info` is `/proc/meminfo`.
fn machine(info: &str) -> Option<MemoryScope> {
    let bytes = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
    };
    let (limit, available) = (bytes("MemTotal:")?, bytes("MemAvailable:")?);
    Some(MemoryScope { name: "the machine".to_owned(), kind: io::ErrorKind::OutOfMemory, limit, available })
}

#[cfg(target_os = "linux")]
fn file_system(dir: &PrivateDir) -> Option<MemoryScope> {
    let found = rustix::fs::fstatvfs(dir.fd().ok()?).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    // Some file systems have no limit, or do not report it.
    let limit = Some(bytes(found.f_blocks)).filter(|limit| *limit > 0)?;
    let (name, kind) = ("the file system of the rings".to_owned(), io::ErrorKind::StorageFull);
    Some(MemoryScope { name, kind, limit, available: bytes(found.f_bavail) })
}

/// Returns the cgroups of this process that have a memory limit.
fn cgroups() -> Vec<MemoryScope> {
    let read = |path: &str| fileguard::read_to_string(path).unwrap_or_default();
    let (own, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
    Version::ALL.iter().flat_map(|version| limits(*version, &own, &mounts)).collect()
}

fn limits(version: Version, own: &str, mounts: &str) -> Vec<MemoryScope> {
    let Some((mount, path)) = version.find(own, mounts) else { return Vec::new() };
    path.ancestors().take_while(|path| path.starts_with(&mount)).filter_map(|path| version.scope(path)).collect()
}

/// The two interfaces of cgroups. A machine may have both; the memory controller is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// Finds the mount point of the hierarchy, and the directory of this process in it. `own` is `/proc/self/cgroup`, `mounts` is
    /// `/proc/self/mountinfo`.
    fn find(self, own: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
        let path = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_this = match self {
                Self::V1 => controllers.split(',').any(|name| name == "memory"),
                Self::V2 => controllers.is_empty(),
            };
            is_this.then_some(path)
        })?;
        let (root, mount) = mounts.lines().find_map(|line| {
            let (mount, rest) = line.split_once(" - ")?;
            let mut fields = mount.split(' ').skip(3);
            let (root, point) = (fields.next()?, fields.next()?);
            let mut rest = rest.split(' ');
            let (kind, options) = (rest.next()?, rest.nth(1)?);
            let is_this = match self {
                Self::V1 => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
                Self::V2 => kind == "cgroup2",
            };
            is_this.then_some((root, point))
        })?;
        let mount = PathBuf::from(mount);
        // In a container that sees only its own cgroup, the root of the mount is that cgroup.
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
        let path = mount.join(below.strip_prefix("/").unwrap_or(below));
        Some((mount, path))
    }

    /// Returns the limit of the cgroup at `path`, if it has one.
    fn scope(self, path: &Path) -> Option<MemoryScope> {
        let read = |name: &str| fileguard::read_to_string(path.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let (limits, usage, reclaimable) = match self {
            Self::V1 => (&["memory.limit_in_bytes"][..], "memory.usage_in_bytes", "total_inactive_file "),
            Self::V2 => (&["memory.max", "memory.high"][..], "memory.current", "inactive_file "),
        };
        let limit = limits.iter().filter_map(|name| number(name)).min().filter(|limit| *limit < UNLIMITED)?;
        let usage = number(usage)?;
        // The kernel reclaims such pages before the cgroup runs out of memory.
        let stat = read("memory.stat").unwrap_or_default();
        let reclaimable = stat.lines().find_map(|line| line.strip_prefix(reclaimable)?.trim().parse::<u64>().ok());
        let used = usage.saturating_sub(reclaimable.unwrap_or(0));
        let name = format!("the cgroup {}", path.display());
        Some(MemoryScope { name, kind: io::ErrorKind::OutOfMemory, limit, available: limit.saturating_sub(used) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    impl MemoryScope {
        pub(in super::super) fn with(limit: u64, available: u64) -> Self {
            Self { name: String::new(), kind: io::ErrorKind::OutOfMemory, limit, available }
        }
    }

    #[test]
    fn a_quarter_stays_free_and_at_least_a_sixteenth_of_the_whole() {
        assert_eq!(MemoryScope::with(16 * MIB, 12 * MIB).room(0), 9 * MIB);
        // The same scope after 9 MiB were taken: no more is granted, however often it is requested.
        assert_eq!(MemoryScope::with(16 * MIB, 12 * MIB).after(9 * MIB).room(9 * MIB), 0);
        assert_eq!(MemoryScope::with(64 * MIB, 5 * MIB).room(0), MIB, "little is left of much");
        assert_eq!(MemoryScope::with(64 * MIB, 4 * MIB).room(0), 0);
        // A disk of 4 TiB of which 1 % is free.
        assert_eq!(MemoryScope::with(4 << 40, 40 << 30).room(0), 30 << 30);
        assert_eq!(MemoryScope::with(4 << 40, 3 << 30).room(0), 1 << 30);
        let error = MemoryScope::with(4 << 40, 1 << 30).error(0, "rings").to_string();
        assert!(error.contains("1073741824 of 4398046511104 bytes left, of which 2147483648 stay free"), "{error}");
    }

    #[test]
    fn of_rings_elsewhere_no_more_counts_than_is_taken_here() {
        // A small cgroup, in a session that takes a gigabyte in others.
        assert_eq!(MemoryScope::with(16 * MIB, 12 * MIB).room(1024 * MIB), 8 * MIB);
    }

    #[test]
    fn the_memory_of_the_machine_is_read() {
        let info = "MemTotal:       24683852 kB\nMemFree:         1 kB\nMemAvailable:   22000000 kB\n";
        let found = machine(info).map(|scope| (scope.limit, scope.available));
        assert_eq!(found, Some((24_683_852 << 10, 22_000_000 << 10)));
        assert_eq!(machine("MemTotal: 1 kB\n"), None, "kernels before 3.14");
    }

    #[test]
    fn the_hierarchies_are_found() {
        let v1 = "4:memory:/a/b\n3:cpuset:/\n0::/x\n";
        let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 31 0:38 /x /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        let found = |mount: &str, path: &str| Some((PathBuf::from(mount), PathBuf::from(path)));
        assert_eq!(Version::V1.find(v1, mounts), found("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b"));
        // The mount shows a part of the hierarchy: the cgroup of the process.
        assert_eq!(Version::V2.find(v1, mounts), found("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/"));
        assert_eq!(Version::V1.find("0::/x\n", mounts), None);
        assert_eq!(
            Version::V2.find("0::/../other\n", mounts),
            found("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/")
        );
    }

    #[test]
    fn limits_are_read_with_what_can_be_reclaimed() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let put = |name: &str, text: &str| std::fs::write(temp.path().join(name), text);
        for (name, text) in [("memory.max", "1000\n"), ("memory.high", "max\n"), ("memory.current", "900\n")] {
            put(name, text)?;
        }
        put("memory.stat", "anon 1\ninactive_file 300\n")?;
        let found = |version: Version| version.scope(temp.path()).map(|scope| (scope.limit, scope.available));
        assert_eq!(found(Version::V2), Some((1000, 400)));
        put("memory.high", "800\n")?;
        assert_eq!(found(Version::V2), Some((800, 200)));
        assert_eq!(found(Version::V1), None);
        put("memory.limit_in_bytes", "9223372036854771712\n")?;
        put("memory.usage_in_bytes", "5\n")?;
        assert_eq!(found(Version::V1), None, "no limit");
        Ok(())
    }
}

//! The time namespace of this process (`time_namespaces(7)`).
//!
//! In a time namespace, `CLOCK_MONOTONIC`, `CLOCK_BOOTTIME`, and the start times in `/proc` are shifted by constant offsets, for the process that
//! reads them. Processes that share a directory may be in different ones. Shared times are therefore converted to the initial namespace.

#[cfg_attr(not(target_os = "linux"), path = "time_namespace/elsewhere.rs")]
mod own;

use crate::boot_id::boot_id;

/// Nanoseconds in a clock tick of `/proc/PID/stat`: `USER_HZ` is 100.
const TICK: i64 = 10_000_000;

/// How far the clocks of a time namespace are ahead of the initial namespace's, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeNamespace {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: i64,
    /// `CLOCK_BOOTTIME`, and start times.
    pub boottime: i64,
}

impl TimeNamespace {
    /// The time namespace of this process; `None` if it is unknown: there never was a `/proc`, or the process has prepared another namespace for its
    /// children (`unshare(CLONE_NEWTIME)`), and the kernel then only reports the offsets of that one. Other systems than Linux have one namespace.
    pub fn of_this_process() -> Option<Self> {
        own::namespace()
    }

    /// Parses lines with a clock's name, seconds, and nanoseconds.
    fn parse(text: &str) -> Option<Self> {
        let offset = |clock: &str| -> Option<i64> {
            let mut words = text.lines().find_map(|line| line.strip_prefix(clock))?.split_ascii_whitespace();
            let (seconds, nanos): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
        };
        Some(Self { monotonic: offset("monotonic")?, boottime: offset("boottime")? })
    }

    /// Identifies `CLOCK_MONOTONIC` of this namespace: the boot id, the last eight bytes of which are combined with the shift by XOR, which is 0 in the initial
    /// namespace.
    pub fn clock(self) -> Option<[u8; 16]> {
        let boot = u128::from_be_bytes(boot_id()?);
        Some((boot ^ u128::from(self.monotonic.cast_unsigned())).to_be_bytes())
    }

    /// Converts a start time in clock ticks after boot, read in this namespace, to the initial one.
    pub fn initial_start(self, ticks: u64) -> u64 {
        ticks.saturating_add_signed(-self.boottime.div_euclid(TICK))
    }
}

/// True if times of the clock with this identity are comparable with those of this process. False if it is `CLOCK_MONOTONIC` of another time
/// namespace of this boot.
pub fn is_own_clock(identity: [u8; 16]) -> bool {
    let own = TimeNamespace::of_this_process().and_then(TimeNamespace::clock);
    let is_of_boot = boot_id().is_some_and(|boot| boot[..8] == identity[..8]);
    !is_of_boot || own == Some(identity)
}

/// Converts a start time that this process has read from `/proc` to the initial time namespace.
pub fn initial_start(ticks: u64) -> u64 {
    TimeNamespace::of_this_process().unwrap_or_default().initial_start(ticks)
}

/// True if two such times belong to the same process, provided that its id is the same: an offset that is not a multiple of a tick may round one up.
pub const fn is_same_start(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_other_namespaces_are_not_compared() -> Result<(), &'static str> {
        let own = TimeNamespace::of_this_process().ok_or("no namespace")?;
        let other = TimeNamespace { monotonic: own.monotonic + 1, ..own };
        let [own, other] = [own, other].map(TimeNamespace::clock);
        assert!(is_own_clock(own.ok_or("no boot id")?) && !is_own_clock(other.ok_or("no boot id")?));
        assert!(is_own_clock([7; 16]), "of another host");
        Ok(())
    }

    #[test]
    fn offsets_are_parsed_and_subtracted() {
        let parsed = TimeNamespace::parse("monotonic           0         0\nboottime      -86400 500000000\n");
        let expected = TimeNamespace { monotonic: 0, boottime: -86_399_500_000_000 };
        assert_eq!(parsed, Some(expected));
        assert_eq!(expected.initial_start(100), 8_640_050);
        assert_eq!(TimeNamespace { boottime: 5_000_000_000, ..expected }.initial_start(507), 7);
        assert_eq!(TimeNamespace::parse("monotonic 0 0\n"), None);
        // Half a tick.
        let half = TimeNamespace { boottime: 5_000_000, ..expected };
        assert!([7, 8].iter().all(|read| is_same_start(half.initial_start(*read), 7)));
        assert!(!is_same_start(7, 9));
    }
}

//! Sizes and times on the command line and in messages.

use crate::argument_error::ArgumentError;
use bytesize::ByteSize;
use std::num::NonZeroU32;
use std::time::Duration;

/// Parses a number of bytes: `100`, `64K`, `1.5GiB`, `100MB`. A letter alone is a power of 1024.
pub(crate) fn size(text: &str) -> Result<u64, ArgumentError> {
    let unit = if text.ends_with(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T']) { "iB" } else { "" };
    let size = format!("{text}{unit}").parse::<ByteSize>().ok().map(|size| size.as_u64());
    // The parser saturates.
    size.filter(|bytes| (1..u64::MAX).contains(bytes))
        .ok_or_else(|| "expected a size, for example `64K`, `100M` or `2GiB`".into())
}

/// Like [`size`]; also accepts 0, for none.
pub(crate) fn size_or_none(text: &str) -> Result<u64, ArgumentError> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// Parses bytes per second: `10M/s`, or `10M`.
pub(crate) fn rate(text: &str) -> Result<u64, ArgumentError> {
    size(text.strip_suffix("/s").unwrap_or(text)).map_err(|_| "expected a rate, for example `64K/s` or `10M/s`".into())
}

/// Parses a number per second that is not 0: `99/s`, or `99`.
pub(crate) fn frequency(text: &str) -> Result<NonZeroU32, ArgumentError> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse();
    number.map_err(|_| "expected a number per second above 0, for example `99/s`".into())
}

/// Parses a time: `500ms`, `10s`, `5m`, `1h 30m`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, ArgumentError> {
    let seconds = text.parse().map(Duration::from_secs);
    seconds
        .or_else(|_| humantime::parse_duration(text))
        .map_err(|_| "expected a time, for example `500ms`, `10s`, `5m` or `1h`".into())
}

/// Splits a port off an address: `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`; the brackets of an IPv6 address may be omitted if there is no port.
pub(crate) fn host_and_port(text: &str) -> Result<(&str, Option<u16>), ArgumentError> {
    let failed = || {
        ArgumentError::from(format!(
            "`{text}`: expected an address, optionally with a port, for example `127.0.0.1:5556` or `[::1]:5556`"
        ))
    };
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(failed)?,
        None if text.matches(':').count() == 1 => text.split_at(text.find(':').unwrap_or_default()),
        None => (text, ""),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => Some(port.parse().map_err(|_| failed())?),
        None if port.is_empty() => None,
        None => return Err(failed()),
    };
    if host.is_empty() { Err(failed()) } else { Ok((host, port)) }
}

/// A number of bytes for display: `1.50 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    format!("{:.2}", ByteSize::b(bytes).display().iec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_split_off_addresses() {
        for (text, expected) in [
            ("127.0.0.1", ("127.0.0.1", None)),
            ("box:7", ("box", Some(7))),
            ("::1", ("::1", None)),
            ("[::1]", ("::1", None)),
            ("[::1]:7", ("::1", Some(7))),
        ] {
            assert_eq!(host_and_port(text), Ok(expected), "{text}");
        }
        for wrong in ["", ":7", "box:", "box:x", "box:70000", "[::1", "[::1]7"] {
            assert!(host_and_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_frequency_is_above_0() {
        for text in ["99/s", "99"] {
            assert_eq!(frequency(text).map(NonZeroU32::get), Ok(99), "{text}");
        }
        for wrong in ["", "0", "0/s", "-1", "9.5", "99/min", "99Hz", "4294967296"] {
            assert!(frequency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        for (text, expected) in [
            ("1", 1),
            ("64K", 65_536),
            ("3M", 3 << 20),
            ("2G", 2 << 30),
            ("1T", 1 << 40),
            ("1GiB", 1 << 30),
            ("1.5 MiB", 3 << 19),
            ("100MB", 100_000_000),
            ("7B", 7),
        ] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "K", "-1", "1.5", "7x", "99999999999999999999", "99999999999999999G"] {
            assert!(size(wrong).is_err() && rate(wrong).is_err(), "{wrong}");
        }
        assert_eq!((rate("10M/s"), rate("64K")), (Ok(10 << 20), Ok(64 << 10)));
        assert_eq!((bytes(3 << 19).as_str(), bytes(5).as_str()), ("1.50 MiB", "5 B"));
    }

    #[test]
    fn times_are_parsed() {
        for (text, expected) in [
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h 30m", 5_400_000),
            ("7d", 604_800_000),
            ("3", 3000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(expected)), "{text}");
        }
        for wrong in ["", "x", "s", "-1s", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

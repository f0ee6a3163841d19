//! The machine and the time of a measurement.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine and the time of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The name and the number of the processors.
    pub cpu: String,
    /// The version of the kernel.
    pub kernel: String,
    /// The version of the compiler.
    pub rustc: String,
    /// The day, UTC.
    pub date: String,
    /// The load average of the last minute. The machine is busy if it is above 1.
    pub load: String,
}

impl Machine {
    /// This machine, now.
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let fields = |name: &'static str| {
            info.lines().filter_map(move |line| line.split_once(':').filter(|(key, _)| key.trim() == name))
        };
        let field = |name| fields(name).next().map_or("?", |(_, value)| value.trim());
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let days = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
        Self {
            cpu: format!(
                "{} × {} (family {} model {})",
                fields("processor").count(),
                field("model name"),
                field("cpu family"),
                field("model")
            ),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().into(),
            rustc: env!("PEERS_RUSTC").into(),
            date: date(days),
            load: load.split(' ').next().unwrap_or("?").into(),
        }
    }

    /// The kind of the processors, without their number.
    pub fn processor(&self) -> &str {
        self.cpu.split_once(" × ").map_or(self.cpu.as_str(), |(_, kind)| kind)
    }

    /// The kind of the processors, in characters that a file name may have: their family and model.
    pub fn id(&self) -> String {
        let kind = self.processor();
        let numbers = kind.rsplit_once('(').map_or(kind, |(_, numbers)| numbers.trim_end_matches(')'));
        numbers.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
    }
}

impl Display for Machine {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { cpu, kernel, rustc, date, load } = self;
        write!(formatter, "{cpu}, Linux {kernel}, {rustc}, {date}, load {load}")
    }
}

/// The Gregorian date that is `days` days after 1970-01-01. The calculation begins years in March, so that the leap day is
/// the last of its year.
fn date(days: u64) -> String {
    const ERA: u64 = 146_097;
    let days = days + 719_468;
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + carry)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        for (days, expected) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_088, "2024-12-31")]
        {
            assert_eq!(date(days), expected);
        }
    }
}

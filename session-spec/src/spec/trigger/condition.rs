//! The conditions of triggers, and their texts.

use super::{Threshold, TriggerPartError};
use crate::spec::Rule;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The condition of a trigger.
///
/// `tracectl trigger`, `session.toml` and [`FromStr`] use the same texts.
///
/// | condition | text | detected by |
/// |---|---|---|
/// | [`CoreDump`](Self::CoreDump) | `OnAnyCoreDump` | the helper for core dumps, or `tracectl listen` |
/// | [`Event`](Self::Event) | `event RULE` | the processes themselves |
/// | [`RingFull`](Self::RingFull) | `ring-full 80%` | the processes themselves |
/// | [`Lost`](Self::Lost) | `lost` | the processes themselves |
/// | [`Statistic`](Self::Statistic) | `statistic p99 of hist(size) > 4096 for 1s` | the processes themselves |
/// | [`Panic`](Self::Panic) | `panic` | the processes themselves |
/// | [`Signal`](Self::Signal) | `signal USR2` | the processes themselves |
/// | [`Exit`](Self::Exit) | `exit` | the processes themselves |
/// | [`Killed`](Self::Killed) | `killed` | `tracectl listen` |
/// | [`Size`](Self::Size) | `size 512M` | `tracectl listen` |
/// | [`Rotated`](Self::Rotated) | `rotated` | `tracectl listen` |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "a session has at most 100 of them")]
pub enum TriggerCondition {
    /// Any process of the system dumps core, and its helper notifies this user.
    #[serde(rename = "OnAnyCoreDump")]
    CoreDump,
    /// An event fires that the rule matches (pattern, level, program, process and filter), whether or not the session records it. A rule
    /// that excludes events, or has a limit or a channel, is invalid here. A snapshot contains the event, if the session records it; its
    /// fields are in the environment block.
    Event(Rule),
    /// A ring of the session in a process is filled to at least this percentage, from 1 to 100; checked every 20 ms. Occurs again after all
    /// rings of the process have been below it. The rings of flight recorders are always full, and are not checked.
    RingFull(u8),
    /// A process begins to lose events before they are in a ring, for any reason; checked every 100 ms. Occurs again after a second without
    /// losses in the process.
    Lost,
    /// A value of a [statistic](Rule::statistic) that the session computes in a process is above or below a limit: `rate of count > 1000`,
    /// `p99 of hist(size) > 4096`, `p99.9 of latency(a:b, a:c by id) by route > 5ms for 1s`. `count` covers the time since the statistic
    /// began; `rate`, `min`, `mean`, `max` and percentiles cover the last second; `ns`, `us`, `ms`, `s`, `min` and `h` are multiples of a
    /// nanosecond, as in filters. Checked every 250 ms, separately for each event and group. Occurs when the comparison has held for the
    /// time after `for`, and again only after it has failed in between.
    Statistic(Threshold),
    /// The outputs of the session have taken at least this many bytes, in sum over all its processes. Occurs once for each start of the
    /// session.
    Size(u64),
    /// The traces of the session continue in new chunks.
    Rotated,
    /// A thread of a process panics. A panic in a probe or in a field's expression is caught and counted, and is not an occurrence.
    Panic,
    /// A process gets this signal: `USR1`, `USR2`, or `RTMIN+N`. A handler is installed in each process of the session while the trigger
    /// exists. It calls the program's previous handler, if there was one; otherwise the signal has no other effect.
    Signal(String),
    /// A process ends by `exit`, because `main` returns, or because its agent is dropped. Occurs while the rings still exist. Not for
    /// sessions in code.
    Exit,
    /// A process is killed by `SIGKILL` or another signal that causes no core dump, or ends by `_exit`.
    Killed,
}

impl TriggerCondition {
    /// The kind of condition: the first word of its text.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::CoreDump => "OnAnyCoreDump",
            Self::Event(_) => "event",
            Self::RingFull(_) => "ring-full",
            Self::Lost => "lost",
            Self::Statistic(_) => "statistic",
            Self::Size(_) => "size",
            Self::Rotated => "rotated",
            Self::Panic => "panic",
            Self::Signal(_) => "signal",
            Self::Exit => "exit",
            Self::Killed => "killed",
        }
    }

    /// Returns whether the processes of the session detect it themselves, without a listener.
    pub const fn is_noticed_in_process(&self) -> bool {
        matches!(
            self,
            Self::Event(_)
                | Self::RingFull(_)
                | Self::Lost
                | Self::Statistic(_)
                | Self::Panic
                | Self::Signal(_)
                | Self::Exit
        )
    }

    /// Checks its argument; the error describes the expected form.
    pub(super) fn check(&self) -> Result<(), TriggerPartError> {
        let wrong = match self {
            Self::Event(rule) => {
                if rule.excludes() || rule.limit.is_some() || rule.channel.is_some() {
                    "the rule of the condition `event` takes a pattern without `!`, a level, a program, a process and a \
                     filter; the trigger itself takes a limit"
                        .to_owned()
                } else {
                    return Ok(rule.check()?);
                }
            }
            Self::RingFull(percent) if !(1..=100).contains(percent) => {
                format!("`ring-full` takes 1 % to 100 %, not {percent} %")
            }
            Self::Size(0) => "`size` takes a number of bytes of more than 0".to_owned(),
            Self::Size(bytes) if i64::try_from(*bytes).is_err() => format!("{bytes} does not fit into 63 bits"),
            Self::Signal(name) if signal_number(name).is_none() => {
                format!("`signal` takes `USR1`, `USR2`, or `RTMIN+N` for a real-time signal, not `{name}`")
            }
            _ => return Ok(()),
        };
        Err(TriggerPartError::argument(wrong))
    }
}

/// Returns `None`: triggers use the signals of Linux.
#[cfg(not(target_os = "linux"))]
pub fn signal_number(_name: &str) -> Option<i32> {
    None
}

/// Returns the number of a signal that a trigger may use: one that the kernel leaves to programs.
#[cfg(target_os = "linux")]
pub fn signal_number(name: &str) -> Option<i32> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    match name {
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        name => {
            let number: u8 = name.strip_prefix("RTMIN+")?.parse().ok()?;
            Some(libc::SIGRTMIN() + i32::from(number)).filter(|number| *number <= libc::SIGRTMAX())
        }
    }
}

impl fmt::Display for TriggerCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Self::Event(rule) => write!(f, " {rule}"),
            Self::RingFull(percent) => write!(f, " {percent}%"),
            Self::Size(bytes) => write!(f, " {bytes}"),
            Self::Statistic(threshold) => write!(f, " {threshold}"),
            Self::Signal(name) => write!(f, " {name}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for TriggerCondition {
    type Err = TriggerPartError;

    /// Parses a kind, and its value after a space: `panic`, `event shop:*`, `ring-full 80%`, `size 1000000` in bytes, `signal USR2`.
    fn from_str(text: &str) -> Result<Self, TriggerPartError> {
        let expected = |form: &str, given: &str| {
            TriggerPartError::argument(format!("expected for example `{form}`, not `{given}`"))
        };
        let (kind, value) = text.split_once(' ').unwrap_or((text, ""));
        let when = match (kind, value) {
            ("OnAnyCoreDump", "") => Self::CoreDump,
            ("lost", "") => Self::Lost,
            ("rotated", "") => Self::Rotated,
            ("panic", "") => Self::Panic,
            ("exit", "") => Self::Exit,
            ("killed", "") => Self::Killed,
            ("event", pattern) => Self::Event(Rule::new(pattern)),
            ("ring-full", percent) => {
                let number = percent.strip_suffix('%').unwrap_or(percent).trim_end().parse();
                Self::RingFull(number.map_err(|_| expected("ring-full 80%", percent))?)
            }
            ("size", bytes) => Self::Size(bytes.parse().map_err(|_| expected("size 1000000", bytes))?),
            ("statistic", text) => Self::Statistic(text.parse()?),
            ("signal", name) => Self::Signal(name.strip_prefix("SIG").unwrap_or(name).to_owned()),
            _ => {
                return Err(TriggerPartError::argument(
                    "there are `OnAnyCoreDump`, `event RULE`, `ring-full PERCENT`, `lost`, `statistic THRESHOLD`, `size BYTES`, `rotated`, `panic`, \
                     `signal NAME`, `exit` and `killed`",
                ));
            }
        };
        when.check().map(|()| when)
    }
}

//! What the rules of sessions compute of events: statistics in files, which are read while the program runs and after it was killed.
//!
//! ```text
//!   rule with a statistic ─▶ PlannedStatistic ─▶ RunningStatistics ─── one aggregate for each marker, on the thread that fires
//!                            (rule_match)         of a session in a         │
//!                                                 process                   ▼
//!                                sessions/NAME/statistics/PID-START.json, PID-START.N.stat ─▶ SessionStatistics, in any process
//! ```
//!
//! **A rule** names one statistic (`statistic = "count by route"`) and records nothing, unless it has `record = true`. Several rules for the same
//! events compute several. A rule computes its statistic for each of its events by itself, so that `count` of `shop:*` tells how often each
//! event fired; a latency is one statistic over its two events. `sample(1/N)` is no statistic, but a condition of recording. The filter of
//! a rule selects the events that are counted; rules that exclude events (`!`) exclude them here, too. A site whose event is only counted has
//! no subscriber that records, and the process makes no ring for the rule.
//!
//! **The numbers** begin when the session starts in a process. They stay readable when it is stopped, and when the process ends or is killed,
//! until the session starts there again or is removed. A process that dies leaves what is committed: one store for each count. The newest
//! [`KEPT`] ended processes are kept.
//!
//! **Memory** is taken, allocated and resident before a site is switched on: at most a quarter of the bound that the session has for its rings,
//! and with the same regard for cgroup and file system. What cannot be had is an error of the rule, and of that rule alone.

mod plan;
mod running;
mod segment;

pub(crate) use plan::{PlannedStatistic, plan};
pub(crate) use running::{Home, LiveStatistic, RunningStatistics};

/// How many processes that have ended are kept.
const KEPT: usize = 256;
/// The largest number of statistics of a session in a process.
const MOST: usize = 4096;

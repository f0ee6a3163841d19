//! The statistics that the rules of sessions compute of events, stored in files that can be read while the program runs and after it was
//! killed.
//!
//! ```text
//!   rule with a statistic ─▶ PlannedStatistic ─▶ RunningStatistics ─── one aggregate for each marker, on the thread that fires
//!                            (rule_match)         of a session in a         │
//!                                                 process                   ▼
//!                                sessions/NAME/statistics/PID-START.json, PID-START.N.stat ─▶ SessionStatistics, in any process
//! ```
//!
//! **A rule** names one statistic (`statistic = "count by route"`) and records nothing, unless it has `record = true`. Several rules for
//! the same events compute several statistics. A rule computes its statistic separately for each of its events, so `count` of `shop:*`
//! counts each event by itself; a latency is one statistic over its two events. `sample(1/N)` is not a statistic, but a condition of
//! recording. The filter of a rule selects the events that are counted; rules that exclude events (`!`) exclude them here, too. A site
//! whose event is only counted has no recording subscriber, and the process creates no ring for the rule.
//!
//! **The numbers** begin when the session starts in a process. They stay readable after the session is stopped, and after the process ends
//! or is killed, until the session starts there again or is removed. A process that dies leaves its committed counts: one store per count.
//! The newest [`KEPT`] ended processes are kept.
//!
//! **Memory** is reserved, allocated and made resident before a site is enabled: at most a quarter of the limit on the session's rings, and
//! with the same limits by cgroup and file system. If memory is not available, that is an error of the rule, and other rules are not
//! affected.

mod plan;
mod running;
mod segment;

pub(crate) use plan::{PlannedStatistic, plan};
pub(crate) use running::{LiveStatistic, RunningStatistics};

/// Maximum number of ended processes whose statistics are kept.
const KEPT: usize = 256;
/// Maximum number of statistics of a session in a process.
const MAX: usize = 4096;

//! Extrapolates the needs of larger fleets from measured figures. The assumptions are the constants here, explained in `docs/fleet.md`.

use std::fmt::Write;

use super::day::DAY_SECONDS;
use super::{Figures, Outcome};

/// Numbers of hosts in the page's fleets.
const SIZES: [u64; 3] = [10, 1_000, 100_000];
/// Average events per second of a host over the day.
const RATE: f64 = 1_000.0;
/// Rate in the peak hour, relative to the average.
const PEAK: f64 = 1.6;
/// Kinds of events per host.
const KINDS: f64 = 3.0;
/// Number of chunks per day that a collector completes and writes into the store.
const CHUNKS: f64 = 24.0;
/// Files of a chunk: one per kind of event, and the account.
const FILES: f64 = KINDS + 1.0;
/// Size in bytes of a file after `tracectl query compact`.
const COMPACTED: f64 = 128.0 * 1_048_576.0;
/// Retention of the store in days, and the backlog in seconds that brokers and collectors have room for.
const KEPT_DAYS: f64 = 30.0;
const BACKLOG: f64 = 7_200.0;
/// Copies of a message in a cluster of brokers.
const REPLICAS: f64 = 3.0;
/// Maximum time in seconds for a query over one day.
const ANSWER: f64 = 60.0;
/// A machine: cores, network bits per second in each direction, bytes of disk. Half of the cores and of the network may be used at the peak.
const CORES: f64 = 16.0;
const NETWORK: f64 = 10e9;
const DISK: f64 = 20e12;
const USED: f64 = 0.5;
/// Number of files of a day that one query can list and open without the listing dominating its time.
const LISTED: f64 = 100_000.0;

/// Needs of fleets of several sizes.
#[derive(Clone, Debug)]
pub struct Plan {
    figures: Figures,
}

/// Needs of one fleet.
struct Need {
    hosts: u64,
    rows: Vec<(&'static str, String)>,
    /// Scarce resources: the name, the number of machines needed for it, and the remedy.
    scarce: Vec<(&'static str, f64, &'static str)>,
}

impl Plan {
    /// A plan based on these figures.
    pub fn new(figures: Figures) -> Self {
        Self { figures }
    }

    /// A plan based on the figures of the page.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn of_the_page() -> Outcome<Self> {
        Ok(Self::new(Figures::measured()?))
    }

    fn need(&self, hosts: u64) -> Need {
        let of = &self.figures;
        let rate = hosts as f64 * RATE;
        let (peak, day) = (rate * PEAK, rate * DAY_SECONDS);
        let wire = peak * of.each(of.wire_bytes as f64);
        let parquet = day * of.each(of.parquet_bytes as f64);
        let cores = |seconds: f64| peak * of.each(seconds);
        // The leader of the stream receives all data, and sends it to the other replicas and to the collectors.
        let leader = wire * 8.0 * REPLICAS;
        let backlog = rate * BACKLOG * of.each(of.ctf_bytes as f64);
        let written = hosts as f64 * CHUNKS * FILES;
        let partitions = hosts as f64 * FILES;
        let compacted = (parquet / COMPACTED).max(partitions);
        // The query was measured over all events; it reads the most frequent kind.
        let query = day * of.each(of.query_seconds);
        let executors = query / ANSWER;
        let brokers = (cores(of.broker_seconds) / (CORES * USED)).max(leader / (NETWORK * USED));
        let collectors = (cores(of.collector_seconds) / (CORES * USED)).max(2.0 * wire * 8.0 / (NETWORK * USED));
        let stores = parquet * KEPT_DAYS / DISK;
        let machines = |count: f64| format!("{}", count.ceil().max(1.0));
        let rows = vec![
            ("events in a day", scaled(day, "")),
            ("events/s at the peak", scaled(peak, "")),
            ("on the wire at the peak", scaled(wire * 8.0, "bit/s")),
            ("cores of brokers at the peak", scaled(cores(of.broker_seconds), "")),
            ("network of the leading broker, out", scaled(leader, "bit/s")),
            ("brokers", format!("{}", (brokers.ceil() * REPLICAS).max(REPLICAS))),
            ("backlog of two hours, CTF", scaled(backlog, "B")),
            ("cores of collectors at the peak", scaled(cores(of.collector_seconds), "")),
            ("collectors", machines(collectors)),
            ("cores that write the store, on average", scaled(rate * of.each(of.store_seconds), "")),
            ("Parquet in a day", scaled(parquet, "B")),
            ("Parquet in 30 days", scaled(parquet * KEPT_DAYS, "B")),
            ("files written in a day", scaled(written, "")),
            ("files of a day, compacted", scaled(compacted, "")),
            ("core seconds of a query of a day", scaled(query, "s")),
            ("cores that answer it in a minute", scaled(executors, "")),
            ("executors", machines(executors / CORES)),
        ];
        let scarce = vec![
            (
                "the leading broker",
                brokers,
                "a stream has one leader: divide the hosts among several clusters of brokers, each with its own collectors",
            ),
            ("collectors", collectors, "start more of them: they share the traces of the brokers"),
            (
                "the disk of the store",
                stores,
                "keep the store in S3, or keep fewer days; filters and limits at the hosts, where an event that is not recorded costs nothing later",
            ),
            (
                "cores for a query of a day",
                executors / CORES,
                "queries by a cluster of executors; conditions on hosts and times, which skip files; smaller tables that a job makes once a day",
            ),
            (
                "files of a day",
                compacted / LISTED,
                "a store for each group of hosts, so that a query lists those of one",
            ),
        ];
        Need { hosts, rows, scarce }
    }

    /// The table of the page, and the first bottleneck of each fleet.
    pub fn text(&self) -> String {
        let needs = SIZES.map(|hosts| self.need(hosts));
        let hosts: Vec<_> = needs.iter().map(|need| grouped(need.hosts)).collect();
        let mut text = format!("| hosts | {} |\n|---|{}\n", hosts.join(" | "), "---|".repeat(needs.len()));
        for (row, (name, _)) in needs[0].rows.iter().enumerate() {
            let values: Vec<_> = needs.iter().map(|need| need.rows[row].1.as_str()).collect();
            let _ = writeln!(text, "| {name} | {} |", values.join(" | "));
        }
        text += "\n| hosts | first bottleneck | then |\n|---|---|---|\n";
        for need in &needs {
            let mut scarce: Vec<_> = need.scarce.iter().collect();
            scarce.sort_by(|a, b| b.1.total_cmp(&a.1));
            let order: Vec<_> = scarce.iter().map(|of| format!("{} ({})", of.0, scaled(of.1, ""))).collect();
            let _ = writeln!(text, "| {} | {} | {} |", grouped(need.hosts), order[0], order[1..].join(", "));
        }
        text += "\n| bottleneck | what then |\n|---|---|\n";
        for (name, _, then) in &needs[0].scarce {
            let _ = writeln!(text, "| {name} | {then} |");
        }
        text
    }
}

/// Formats a number with two digits and a metric prefix.
fn scaled(value: f64, unit: &str) -> String {
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (divisor, prefix) = prefixes.into_iter().find(|(divisor, _)| value >= *divisor).unwrap_or((1.0, ""));
    let scaled = value / divisor;
    let digits = match scaled {
        ..0.1 => 3,
        ..10.0 => 1,
        _ => 0,
    };
    let unit = format!("{prefix}{unit}");
    format!("{scaled:.digits$}{}{unit}", if unit.is_empty() { "" } else { " " })
}

fn grouped(hosts: u64) -> String {
    if hosts < 1000 { hosts.to_string() } else { format!("{},{:03}", hosts / 1000, hosts % 1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/fleet.md");

    #[test]
    fn the_page_has_what_is_computed() {
        let text = Plan::of_the_page().expect("figures").text();
        assert!(PAGE.contains(text.trim()), "write this into docs/fleet.md:\n{text}");
        let measured = Figures::measured().expect("figures").table();
        assert!(PAGE.contains(measured.trim()), "write this into docs/fleet.md:\n{measured}");
    }

    #[test]
    fn needs_grow_with_the_fleet_and_with_costs() {
        let mut figures = Figures::measured().expect("figures");
        let plan = Plan::new(figures.clone());
        let scarce = |plan: &Plan, hosts| plan.need(hosts).scarce.iter().map(|of| of.1).collect::<Vec<_>>();
        let (small, large) = (scarce(&plan, 10), scarce(&plan, 100_000));
        assert!(
            small.iter().zip(&large).all(|(small, large)| (large / small - 10_000.0).abs() < 1.0),
            "{small:?} {large:?}"
        );
        figures.parquet_bytes *= 1000;
        let text = Plan::new(figures).text();
        assert!(text.contains("| 10 | the disk of the store ("), "{text}");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(86_400_000.0, "86 MB"), (1600.0, "1.6 kB"), (0.04, "0.040 B"), (12.0, "12 B")] {
            assert_eq!(scaled(value, "B"), text);
        }
        assert_eq!((grouped(10), grouped(100_000)), ("10".to_owned(), "100,000".to_owned()));
    }
}

//! The paired harness: all variants take turns in one process, and each is compared with the loop without a site that ran in
//! the same round.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::collections::HashMap;
use std::env;
use std::hint::black_box;
use std::io::{IsTerminal, stderr, stdout};
use std::process::Command;
use std::time::Duration;
use tracepoint_peers::contender::{Contender, PASSES, Sample};
use tracepoint_peers::interval::Interval;
use tracepoint_peers::kernel::{self, KERNELS, Kernel};
use tracepoint_peers::machine::Machine;
use tracepoint_peers::report::{Absent, Checked, Report, Row};
use tracepoint_peers::variant::{Mode, Unusable, Variant};
use tracepoint_peers::{cpu, peer};

/// Measures what a tracepoint costs next to its peers.
///
/// Without --check, --count or --list: in each round every variant runs every kernel once, so that whatever disturbs the machine
/// disturbs all of them. Prints for each the median over the rounds of its time divided by that of the same kernel without a
/// site, with a 95 % confidence interval from order statistics, and the nanoseconds that an event adds. Afterwards every variant
/// is switched on and counted; one that does not hit is an error.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  paired                                  everything, some minutes
  paired --quick --mode off               a smoke test of what is switched off
  paired --filter ours --kernel tight     this library's variants, kernels that have `tight` in their names
  paired --json > run.json                for the bin `chart`
  paired --check                          no measurement: does every variant hit when it is on?
  paired --check ours-lazy                the same for one
  valgrind --tool=callgrind --toggle-collect='*Compiled::run*' paired --count ours-lazy tight 1000
  paired --list                           the names of variants and kernels")]
struct Options {
    /// Few short rounds: shows that it works, not what it costs
    #[arg(long)]
    quick: bool,
    /// How many rounds [default: 31, with --quick 3]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// How long a variant runs in a round, in microseconds [default: 500, with --quick 50]
    #[arg(long, value_name = "N")]
    micros: Option<u64>,
    /// Only variants whose name contains this; repeat it for more
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Only kernels whose name contains this; repeat it for more
    #[arg(long, value_name = "TEXT")]
    kernel: Vec<String>,
    /// Only variants that are off, or on
    #[arg(long, value_parser = ["off", "on"])]
    mode: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Switch every variant on, or one, and count its hits
    #[arg(long, value_name = "VARIANT", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["count", "list"])]
    check: Option<String>,
    /// Run exactly N iterations and nothing else
    #[arg(long, num_args = 3, value_names = ["VARIANT", "KERNEL", "N"], conflicts_with = "list")]
    count: Option<Vec<String>>,
    /// List variants and kernels
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if options.list {
        list();
        return Ok(());
    }
    if let Some(arguments) = &options.count {
        return count(&arguments[0], &arguments[1], &arguments[2]);
    }
    let pinned = cpu::pin();
    if let Some(name) = &options.check {
        return if name.is_empty() { check_all(&options.variants()) } else { check(variant(name)?) };
    }
    let report = options.measure(pinned)?;
    if options.json {
        serde_json::to_writer_pretty(stdout(), &report)?;
        println!();
    } else {
        print(&report);
    }
    let wrong: Vec<_> = report.checks.iter().filter(|check| !check.holds).collect();
    for check in &wrong {
        eprintln!("paired: {}: {}", check.variant, check.found);
    }
    ensure!(wrong.is_empty(), "some variants do not measure what they say");
    Ok(())
}

fn list() {
    for variant in peer::all() {
        let mode = if variant.mode == Mode::On { "on " } else { "off" };
        println!("{:<26}{mode}  {}", variant.name, variant.does);
    }
    println!();
    for kernel in &KERNELS {
        println!("{:<26}{}", kernel.name, kernel.does);
    }
}

fn variant(name: &str) -> Result<&'static Variant> {
    peer::all().find(|variant| variant.name == name).with_context(|| format!("no variant `{name}`; see --list"))
}

/// Runs a kernel, for a program that counts instructions.
fn count(name: &str, kernel_name: &str, iterations: &str) -> Result<()> {
    let variant = variant(name)?;
    let kernel = kernel::find(kernel_name).with_context(|| format!("no kernel `{kernel_name}`; see --list"))?;
    let iterations: u64 = iterations.parse().context("N is a number of iterations")?;
    ensure!(
        iterations * kernel.events <= variant.limit,
        "{name} takes no more than {} events at a time",
        variant.limit
    );
    let armed = (variant.arm)()?;
    black_box(variant.kernels.run(kernel, iterations));
    drop(armed);
    Ok(())
}

/// Switches a variant on and counts, and fails if it is not what it says.
fn check(variant: &Variant) -> Result<()> {
    match variant.check() {
        Ok(check) => {
            println!("{check}");
            ensure!(check.holds(), "{} does not hit when it is on, or does when it is off", variant.name);
        }
        Err(reason) => println!("not usable: {reason}"),
    }
    Ok(())
}

fn check_all(variants: &[&'static Variant]) -> Result<()> {
    let mut failed = 0;
    for variant in variants {
        let (holds, found) = proof(variant)?;
        println!("{:<26}{found}", variant.name);
        failed += usize::from(!holds);
    }
    ensure!(failed == 0, "{failed} variants do not hit when they are on, or do when they are off");
    Ok(())
}

impl Options {
    fn variants(&self) -> Vec<&'static Variant> {
        peer::all().filter(|variant| self.wants(variant)).collect()
    }

    fn wants(&self, variant: &Variant) -> bool {
        let mode = match self.mode.as_deref() {
            Some("off") => variant.mode == Mode::Off,
            Some("on") => variant.mode == Mode::On,
            _ => true,
        };
        mode && (self.filter.is_empty() || self.filter.iter().any(|filter| variant.name.contains(filter)))
    }

    fn measure(&self, pinned: Option<usize>) -> Result<Report> {
        let rounds = self.rounds.unwrap_or(if self.quick { 3 } else { 31 }).max(1);
        let time = Duration::from_micros(self.micros.unwrap_or(if self.quick { 50 } else { 500 }).max(1));
        let mut report = Report {
            machine: Machine::here(),
            pinned,
            rounds,
            rows: Vec::new(),
            checks: Vec::new(),
            unusable: Vec::new(),
        };
        let base = peer::all().next().context("there is a base")?;
        let kernels: Vec<_> = KERNELS
            .iter()
            .filter(|kernel| self.kernel.is_empty() || self.kernel.iter().any(|filter| kernel.name.contains(filter)))
            .collect();
        for belongs in PASSES {
            let mut contenders = vec![Contender::enter(base)?];
            let wanted = peer::all().filter(|variant| belongs(variant) && variant.name != base.name);
            for variant in wanted.filter(|variant| self.wants(variant)) {
                match Contender::enter(variant) {
                    Ok(contender) => contenders.push(contender),
                    Err(Unusable(reason)) => report.unusable.push(Absent {
                        variant: variant.name.into(),
                        does: variant.does.into(),
                        on: variant.mode == Mode::On,
                        reason,
                    }),
                }
            }
            if contenders.len() == 1 {
                continue;
            }
            for kernel in &kernels {
                if stderr().is_terminal() {
                    eprintln!("{}: {} variants", kernel.name, contenders.len() - 1);
                }
                report.rows.extend(compare(&mut contenders, kernel, rounds, time)?);
            }
            for contender in contenders.into_iter().skip(1) {
                let variant = contender.variant();
                let account = contender.leave();
                let (holds, found) = proof(variant)?;
                report.checks.push(Checked {
                    variant: variant.name.into(),
                    holds,
                    found,
                    events: account.events,
                    lost: variant.tells.then_some(account.lost),
                });
            }
        }
        Ok(report)
    }
}

/// Checks a variant in a process of its own: what one library does to be switched on is none of another's business.
fn proof(variant: &Variant) -> Result<(bool, String)> {
    let program = env::current_exe().context("this program's path")?;
    let output = Command::new(program).args(["--check", variant.name]).output().context("run --check")?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok((output.status.success(), text.trim().into()))
}

/// Lets variants take turns in a kernel. The first one is the base.
fn compare(contenders: &mut [Contender], kernel: &Kernel, rounds: usize, time: Duration) -> Result<Vec<Row>> {
    let iterations: Vec<u64> =
        contenders.iter_mut().map(|contender| calibrate(contender, kernel, time)).collect::<Result<_, _>>()?;
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            // Each round begins with another variant, so that nobody always follows the same one.
            let index = (turn + round) % contenders.len();
            samples[index].push(contenders[index].sample(kernel, iterations[index])?.ns_per_event());
        }
    }
    let base = &samples[0];
    let rows = contenders.iter().zip(&samples).skip(1).map(|(contender, ns)| {
        let paired = |combine: fn(f64, f64) -> f64| {
            Interval::of(ns.iter().zip(base).map(|(ns, base)| combine(*ns, *base)).collect())
        };
        let variant = contender.variant();
        Row {
            variant: variant.name.into(),
            does: variant.does.into(),
            on: variant.mode == Mode::On,
            kernel: kernel.name.into(),
            ratio: paired(|ns, base| ns / base),
            added_ns: paired(|ns, base| ns - base),
            ns_min: ns.iter().copied().fold(f64::INFINITY, f64::min),
            ns_median: Interval::of(ns.clone()).median,
        }
    });
    Ok(rows.collect())
}

/// How many iterations take about so long.
fn calibrate(contender: &mut Contender, kernel: &Kernel, time: Duration) -> Result<u64, Unusable> {
    let most = contender.most(kernel);
    let mut iterations = 100.min(most);
    loop {
        let sample: Sample = contender.sample(kernel, iterations)?;
        if iterations >= most {
            return Ok(most);
        }
        if sample.time >= time / 8 {
            let scaled = u128::from(iterations) * time.as_nanos() / sample.time.as_nanos().max(1);
            // The first sixteen turns are warming up.
            return Ok((scaled as u64).clamp(32, most));
        }
        iterations = (iterations * 4).min(most);
    }
}

fn print(report: &Report) {
    println!("{}", report.machine);
    match report.pinned {
        Some(cpu) => println!("pinned to processor {cpu}; {} rounds", report.rounds),
        None => println!("not pinned; {} rounds", report.rounds),
    }
    let mut kernels: Vec<(&str, bool, Vec<&Row>)> = Vec::new();
    for row in &report.rows {
        match kernels.last_mut() {
            Some((kernel, on, rows)) if *kernel == row.kernel && *on == row.on => rows.push(row),
            _ => kernels.push((&row.kernel, row.on, vec![row])),
        }
    }
    let checks: HashMap<_, _> = report.checks.iter().map(|check| (&check.variant, check.holds)).collect();
    for (kernel, on, rows) in kernels {
        println!("\n{kernel}, {}", if on { "on" } else { "off" });
        println!(
            "  {:<25} {:>8} {:>19} {:>10} {:>8} {:>8}",
            "variant", "ratio", "95 %", "added ns", "min ns", "median"
        );
        for row in rows {
            let doubt = if checks.get(&row.variant) == Some(&false) { "  DOES NOT HIT" } else { "" };
            println!(
                "  {:<25} {:>8.3} {:>9.3}-{:<9.3} {:>10.3} {:>8.3} {:>8.3}{doubt}",
                row.variant,
                row.ratio.median,
                row.ratio.low,
                row.ratio.high,
                row.added_ns.median,
                row.ns_min,
                row.ns_median,
            );
        }
    }
    println!();
    for check in report.checks.iter().filter(|check| check.lost.is_some_and(|lost| lost > 0)) {
        println!("{}: lost {} of {} events", check.variant, check.lost.unwrap_or_default(), check.events);
    }
    for absent in &report.unusable {
        println!("{}: not usable: {}", absent.variant, absent.reason);
    }
}

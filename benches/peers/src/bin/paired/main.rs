//! The paired harness: all variants run alternately in one process, and each is compared with the loop without a site of
//! the same round.

mod measure;
mod print;
mod proof;
mod rounds;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::hint::black_box;
use std::io::stdout;
use tracepoint_peers::kernel::{self, KERNELS};
use tracepoint_peers::variant::Variant;
use tracepoint_peers::{cpu, peer};

/// Measures the cost of a tracepoint next to its peers.
///
/// Without --check, --count or --list: in each round every variant runs every kernel once, so that a disturbance of the machine
/// affects all of them. Prints for each variant the median over the rounds of its time divided by that of the same kernel without a
/// site, with a 95 % confidence interval from order statistics, and the nanoseconds that an event adds. Afterwards every variant
/// is switched on and its hits are counted; a variant without hits is an error. Variants that record also run on two processors at
/// once, and for long enough to fill their buffers.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  paired                                  everything, some minutes
  paired --quick --mode off               a smoke test of the variants that are off
  paired --filter ours --kernel tight     this library's variants, kernels that have `tight` in their names
  paired --json > run.json                for the bin `chart`
  paired --check                          no measurement: does every variant hit when it is on?
  paired --check ours-lazy                the same for one
  valgrind --tool=callgrind --toggle-collect='*Compiled::run*' paired --count ours-lazy tight 1000
  paired --list                           the names of variants and kernels")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Options {
    /// Few short rounds: a test of the harness, not a measurement
    #[arg(long)]
    quick: bool,
    /// Number of rounds [default: 31, with --quick 3]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Duration of a variant in a round, in microseconds [default: 500, with --quick 50]
    #[arg(long, value_name = "N")]
    micros: Option<u64>,
    /// Only variants whose name contains this; repeat it for more
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Only kernels whose name contains this; repeat it for more
    #[arg(long, value_name = "TEXT")]
    kernel: Vec<String>,
    /// Only variants that are off, on, or record
    #[arg(long, value_parser = ["off", "on", "recorded"])]
    mode: Option<String>,
    /// No runs on two processors at once
    #[arg(long)]
    no_two: bool,
    /// Duration of the run without a pause, in milliseconds, for each variant that records and counts its losses; 0 for no such run
    /// [default: 1000, with --quick 50]
    #[arg(long, value_name = "N")]
    sustained: Option<u64>,
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
        return if name.is_empty() {
            proof::all(&options.variants())
        } else {
            proof::show(variant(name)?, options.json)
        };
    }
    let report = measure::measure(&options, pinned)?;
    if options.json {
        serde_json::to_writer_pretty(stdout(), &report)?;
        println!();
    } else {
        print::print(&report);
    }
    let wrong: Vec<_> = report.checks.iter().filter(|check| !check.proof.holds).collect();
    for check in &wrong {
        eprintln!("paired: {}: {}", check.variant, check.proof.found);
    }
    ensure!(wrong.is_empty(), "some variants do not measure what they say");
    Ok(())
}

fn list() {
    for variant in peer::all() {
        println!("{:<26}{:<10}{}", variant.name, variant.mode.name(), variant.does);
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
    let thread = variant.on_this_thread()?;
    black_box(variant.kernels.run(kernel, iterations));
    drop(thread);
    drop(armed);
    Ok(())
}

impl Options {
    fn variants(&self) -> Vec<&'static Variant> {
        peer::all().filter(|variant| self.wants(variant)).collect()
    }

    fn wants(&self, variant: &Variant) -> bool {
        self.mode.as_deref().is_none_or(|mode| mode == variant.mode.name())
            && (self.filter.is_empty() || self.filter.iter().any(|filter| variant.name.contains(filter)))
    }
}

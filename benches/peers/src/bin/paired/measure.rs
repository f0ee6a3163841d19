//! A whole run.

use crate::rounds::{Plan, alone_and_beside, calibrate, compare};
use crate::{Options, proof};
use anyhow::{Context, Result};
use std::io::{IsTerminal, stderr};
use std::time::Duration;
use tracepoint_peers::contender::{Contender, PASSES};
use tracepoint_peers::kernel::{self, KERNELS, Kernel};
use tracepoint_peers::machine::Machine;
use tracepoint_peers::report::{Absent, Checked, Report, Sustained};
use tracepoint_peers::variant::{Unusable, Variant};
use tracepoint_peers::{cpu, peer};

/// Measures what the options select.
pub(crate) fn measure(options: &Options, pinned: Option<usize>) -> Result<Report> {
    let plan = Plan {
        rounds: options.rounds.unwrap_or(if options.quick { 3 } else { 31 }).max(1),
        time: Duration::from_micros(options.micros.unwrap_or(if options.quick { 50 } else { 500 }).max(1)),
    };
    let mut report = Report {
        machine: Machine::here(),
        pinned,
        rounds: plan.rounds,
        rows: Vec::new(),
        two: Vec::new(),
        sustained: Vec::new(),
        checks: Vec::new(),
        unusable: Vec::new(),
    };
    let kernels: Vec<_> = KERNELS
        .iter()
        .filter(|kernel| options.kernel.is_empty() || options.kernel.iter().any(|filter| kernel.name.contains(filter)))
        .collect();
    for belongs in PASSES {
        pass(options, &plan, belongs, &kernels, &mut report)?;
    }
    let long = Duration::from_millis(options.sustained.unwrap_or(if options.quick { 50 } else { 1000 }));
    if !long.is_zero() {
        for variant in options.variants() {
            report.sustained.extend(sustain(variant, &plan, long)?);
        }
    }
    Ok(report)
}

/// Measures the variants that belong to one pass.
fn pass(
    options: &Options,
    plan: &Plan,
    belongs: fn(&Variant) -> bool,
    kernels: &[&'static Kernel],
    report: &mut Report,
) -> Result<()> {
    let base = peer::all().next().context("there is a base")?;
    let mut contenders = vec![Contender::enter(base)?];
    for variant in options.variants().into_iter().filter(|variant| belongs(variant) && variant.name != base.name) {
        match Contender::enter(variant) {
            Ok(contender) => contenders.push(contender),
            Err(Unusable(reason)) => report.unusable.push(Absent {
                variant: variant.name.into(),
                does: variant.does.into(),
                mode: variant.mode,
                reason,
            }),
        }
    }
    if contenders.len() == 1 {
        return Ok(());
    }
    for kernel in kernels {
        say(&format!("{}: {} variants", kernel.name, contenders.len() - 1));
        report.rows.extend(compare(&mut contenders, kernel, plan)?);
    }
    if let ([first, .., last], false) = (&cpu::allowed()[..], options.no_two) {
        for contender in contenders.iter_mut().filter(|contender| contender.variant().recording.is_some()) {
            say(&format!("two at once: {}", contender.variant().name));
            report.two.push(alone_and_beside(contender, [*last, *first], plan)?);
        }
    }
    for contender in contenders.into_iter().skip(1) {
        let variant = contender.variant();
        let account = contender.leave();
        report.checks.push(Checked {
            variant: variant.name.into(),
            proof: proof::of(variant)?,
            events: account.events,
            lost: variant.counts_losses.then_some(account.lost),
        });
    }
    Ok(())
}

/// Runs a variant that counts its losses for `time`, if a consumer drains it.
fn sustain(variant: &'static Variant, plan: &Plan, time: Duration) -> Result<Option<Sustained>> {
    if !variant.counts_losses || !variant.recording.is_some_and(|recording| recording.sustained) {
        return Ok(None);
    }
    // Variants that cannot be used were reported before.
    let Ok(mut contender) = Contender::enter(variant) else { return Ok(None) };
    say(&format!("without a pause: {}", variant.name));
    let kernel = kernel::find("tight").context("there is a tight kernel")?;
    let short = calibrate(&mut contender, kernel, plan.time)?;
    let sample = contender.sample(kernel, short)?;
    let iterations = u128::from(sample.events) * time.as_nanos() / sample.time.as_nanos().max(1);
    let sample = contender.sustain(kernel, iterations as u64)?;
    let account = contender.leave();
    Ok(Some(Sustained {
        variant: variant.name.into(),
        ns: sample.ns_per_event(),
        events: account.events,
        lost: account.lost,
    }))
}

/// Progress for the user.
fn say(what: &str) {
    if stderr().is_terminal() {
        eprintln!("{what}");
    }
}

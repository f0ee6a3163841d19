//! Rounds with alternating variants.

use anyhow::{Context, Result};
use std::time::Duration;
use tracepoint_peers::contender::{Contender, Sample};
use tracepoint_peers::interval::Interval;
use tracepoint_peers::kernel::{self, Kernel};
use tracepoint_peers::report::{Row, Two};
use tracepoint_peers::variant::Unusable;

/// The length of a measurement.
pub(crate) struct Plan {
    /// The number of rounds.
    pub(crate) rounds: usize,
    /// The duration of a variant in a round.
    pub(crate) time: Duration,
}

/// Runs variants alternately in a kernel. The first one is the base.
pub(crate) fn compare(contenders: &mut [Contender], kernel: &Kernel, plan: &Plan) -> Result<Vec<Row>> {
    let iterations: Vec<u64> =
        contenders.iter_mut().map(|contender| calibrate(contender, kernel, plan.time)).collect::<Result<_, _>>()?;
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    for round in 0..plan.rounds {
        for turn in 0..contenders.len() {
            // Each round begins with another variant, so that no variant always follows the same one.
            let index = (turn + round) % contenders.len();
            samples[index].push(contenders[index].sample(kernel, iterations[index])?.ns_per_event());
        }
    }
    let base = &samples[0];
    let rows = contenders.iter().zip(&samples).skip(1).map(|(contender, ns)| {
        let variant = contender.variant();
        let floor = variant.recording.and_then(|recording| {
            let index = contenders.iter().position(|other| other.variant().name == recording.floor)?;
            let added = |ns: &[f64]| ns.iter().zip(base).map(|(ns, base)| ns - base).collect::<Vec<_>>();
            Some(paired(&added(ns), &added(&samples[index]), |ns, floor| ns / floor))
        });
        Row {
            variant: variant.name.into(),
            does: variant.does.into(),
            mode: variant.mode,
            kernel: kernel.name.into(),
            ratio: paired(ns, base, |ns, base| ns / base),
            added_ns: paired(ns, base, |ns, base| ns - base),
            ns_min: ns.iter().copied().fold(f64::INFINITY, f64::min),
            ns_median: Interval::of(ns.clone()).median,
            over_floor: floor,
        }
    });
    Ok(rows.collect())
}

/// Runs a variant alternately on one processor and on two at once. The single one is the first of the two.
pub(crate) fn alone_and_beside(contender: &mut Contender, cpus: [usize; 2], plan: &Plan) -> Result<Two> {
    let kernel = kernel::find("tight").context("there is a tight kernel")?;
    let iterations = calibrate(contender, kernel, plan.time)?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        alone.push(contender.sample_on(kernel, iterations, &cpus[..1])?.ns_per_event());
        beside.push(contender.sample_on(kernel, iterations, &cpus)?.ns_per_event());
    }
    Ok(Two {
        variant: contender.variant().name.into(),
        ratio: paired(&beside, &alone, |beside, alone| beside / alone),
        alone_ns: Interval::of(alone),
        beside_ns: Interval::of(beside),
    })
}

/// Combines the samples of the same rounds.
fn paired(values: &[f64], others: &[f64], combine: fn(f64, f64) -> f64) -> Interval {
    Interval::of(values.iter().zip(others).map(|(value, other)| combine(*value, *other)).collect())
}

/// The number of iterations that take about `time`.
pub(crate) fn calibrate(contender: &mut Contender, kernel: &Kernel, time: Duration) -> Result<u64, Unusable> {
    let most = contender.most(kernel);
    let mut iterations = 100.min(most);
    loop {
        let sample: Sample = contender.sample(kernel, iterations)?;
        if iterations >= most {
            return Ok(most);
        }
        if sample.time >= time / 8 {
            let scaled = u128::from(iterations) * time.as_nanos() / sample.time.as_nanos().max(1);
            return Ok((scaled as u64).clamp(32, most));
        }
        iterations = (iterations * 4).min(most);
    }
}

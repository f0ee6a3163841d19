//! The figures: their loads, and their computation.

use crate::load::{Load, Phase};
use crate::plan::Plan;
use crate::system::System;
use crate::trial::{Idle, Spent, Trial};
use anyhow::{Result, anyhow};
use clap::ValueEnum;
use std::collections::HashMap;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::thread;
use std::time::Duration;
use tracepoint_benches::floor;
use tracepoint_peers::interval::Interval;
use tracepoint_peers::machine::Machine;
use tracepoint_peers::systems::{Absent, Figure, Report};

/// The values of all rounds.
#[derive(Default)]
struct Samples(Vec<(String, &'static str, Vec<f64>)>);

impl Samples {
    fn add(&mut self, what: &str, system: &'static str, value: f64) {
        let row = self.0.iter_mut().find(|(of, by, _)| of == what && *by == system);
        match row {
            Some((.., values)) => values.push(value),
            None => self.0.push((what.to_owned(), system, vec![value])),
        }
    }

    fn into_figures(self) -> Vec<Figure> {
        let figure = |(what, system, values): (String, &str, Vec<f64>)| Figure {
            what,
            system: system.to_owned(),
            value: Interval::of(values),
        };
        self.0.into_iter().map(figure).collect()
    }
}

/// A measurement.
struct Run<'p> {
    plan: &'p Plan,
    tracectl: &'p Path,
    samples: Samples,
    /// The step at which the search for the highest step without loss ended in the last round.
    steps: HashMap<(&'static str, &'static str), usize>,
}

/// Measures the selected figures and systems; all if none is selected.
pub(crate) fn measure(plan: &Plan, tracectl: &Path, systems: &[System], figures: &[String]) -> Result<Report> {
    let machine = Machine::here();
    let mut absent = Vec::new();
    let mut chosen = Vec::new();
    for system in System::value_variants() {
        // The loads without a tracer are subtracted from the others.
        if !(systems.is_empty() || systems.contains(system) || *system == System::None) {
            continue;
        }
        match system.check() {
            Ok(()) => chosen.push(*system),
            Err(reason) => absent.push(Absent { system: system.name().into(), reason: reason.to_string() }),
        }
    }
    let mut run = Run { plan, tracectl, samples: Samples::default(), steps: HashMap::new() };
    let wanted = |figure: &str| figures.is_empty() || figures.iter().any(|wanted| wanted == figure);
    for round in 0..plan.rounds {
        let first = round % chosen.len();
        chosen.rotate_left(first);
        let tracers: Vec<_> = chosen.iter().copied().filter(|system| *system != System::None).collect();
        if wanted("steady") {
            for system in &tracers {
                run.steady(*system, "steady-1", 1)?;
                run.steady(*system, "steady-2", 2)?;
            }
        }
        if wanted("flat") {
            let floor = floor::kept_per_second(Path::new("/dev/shm"), plan.flat).map_err(|error| anyhow!("{error}"))?;
            run.samples.add("flat", "floor", floor);
            for system in &tracers {
                run.flat(*system)?;
            }
        }
        if wanted("burst") {
            for system in &tracers {
                run.burst(*system)?;
            }
        }
        if wanted("cost") {
            run.costs(&chosen)?;
        }
        chosen.rotate_right(first);
    }
    let figures = run.samples.into_figures();
    Ok(Report { machine, rounds: plan.rounds, pause_ms: plan.pause.as_millis() as u64, figures, absent })
}

impl Run<'_> {
    /// The highest rate that is reached without loss.
    fn steady(&mut self, system: System, what: &'static str, threads: usize) -> Result<()> {
        let plan = self.plan;
        self.climb(system, what, plan.rates, |rate| Load {
            threads,
            pause: plan.pause,
            phases: vec![Phase::steady(rate, plan.steady, plan.rest)],
        })
    }

    /// The largest burst without loss.
    fn burst(&mut self, system: System) -> Result<()> {
        let plan = self.plan;
        let load = |events| Load { threads: 1, pause: plan.pause, phases: vec![Phase::burst(events)] };
        self.climb(system, "burst", plan.bursts, load)
    }

    /// Searches upwards from the step of the last round while nothing is lost, or downwards until nothing is lost. 0 if every step loses events.
    fn climb(&mut self, system: System, what: &'static str, steps: &[u64], load: impl Fn(u64) -> Load) -> Result<()> {
        say(what, system);
        let tracectl = self.tracectl;
        let holds = |step: usize| -> Result<bool> {
            let mut trial = Trial::start(system, tracectl)?;
            let mut reached = true;
            trial.run(&load(steps[step]), |mark, _| {
                reached &= mark.reached;
                Ok(())
            })?;
            Ok(trial.stop()?.lost == 0 && reached)
        };
        let last = self.steps.entry((what, system.name())).or_insert(steps.len() / 3);
        let mut found = None;
        if holds(*last)? {
            found = Some(*last);
            while let Some(next) = found.map(|step| step + 1).filter(|next| *next < steps.len()) {
                if !holds(next)? {
                    break;
                }
                found = Some(next);
            }
        } else {
            for step in (0..*last).rev() {
                if holds(step)? {
                    found = Some(step);
                    break;
                }
            }
        }
        *last = found.unwrap_or_default();
        self.samples.add(what, system.name(), found.map_or(0.0, |step| steps[step] as f64));
        Ok(())
    }

    /// The rate at which events are kept from a thread that fires continuously.
    fn flat(&mut self, system: System) -> Result<()> {
        say("flat", system);
        let load = Load { threads: 1, pause: self.plan.pause, phases: vec![Phase::flat_out(self.plan.flat)] };
        let mut trial = Trial::start(system, self.tracectl)?;
        let mut wall = 0.0;
        trial.run(&load, |mark, _| {
            wall += mark.wall.as_secs_f64();
            Ok(())
        })?;
        let outcome = trial.stop()?;
        self.samples.add("flat", system.name(), outcome.kept() as f64 / wall);
        self.samples.add("flat-lost", system.name(), 100.0 * outcome.lost as f64 / outcome.fired as f64);
        Ok(())
    }

    /// The cost of an idle program, and of an event at low rates. The cost of the program without a tracer in the same round is subtracted.
    fn costs(&mut self, systems: &[System]) -> Result<()> {
        let (mut bare, mut others) = (None, Vec::new());
        for system in systems {
            let measured = self.cost(*system)?;
            match system {
                System::None => bare = Some(measured),
                system => others.push((system.name(), measured)),
            }
        }
        let Some((bare_idle, bare)) = bare else { return Ok(()) };
        for (system, (idle, spent)) in others {
            let samples = &mut self.samples;
            samples.add("wakes-program", system, idle.program_wakes);
            samples.add("wakes-consumer", system, idle.consumer_wakes);
            samples.add("rss", system, idle.program.rss as f64 - bare_idle.program.rss as f64);
            samples.add("pss", system, idle.program.pss as f64 - bare_idle.program.pss as f64);
            samples.add("consumer-pss", system, idle.consumer.pss as f64);
            samples.add("shared", system, idle.shared as f64 - bare_idle.shared as f64);
            for ((rate, _), (spent, bare)) in self.plan.costs.iter().zip(spent.iter().zip(&bare)) {
                samples.add(&format!("program-{rate}"), system, spent.0 - bare.0);
                samples.add(&format!("consumer-{rate}"), system, spent.1);
            }
        }
        Ok(())
    }

    /// The idle cost, and nanoseconds in the program and in other processes for an event at each rate. For the threads that
    /// fire, only the time inside their events counts: falling asleep and waking up takes longer, and varies more.
    fn cost(&self, system: System) -> Result<(Idle, Vec<(f64, f64)>)> {
        say("cost", system);
        let plan = self.plan;
        let phases = plan.costs.iter().map(|(rate, time)| Phase::steady(*rate, *time, plan.rest)).collect();
        let mut trial = Trial::start(system, self.tracectl)?;
        thread::sleep(plan.pause);
        let idle = trial.idle(plan.idle)?;
        let (mut spent, mut before) = (Vec::new(), None::<Spent>);
        trial.run(&Load { threads: 1, pause: plan.pause, phases }, |mark, now| {
            if let Some(before) = before {
                let ns = |time: Duration| time.as_nanos() as f64 / mark.events as f64;
                let others = now.program.saturating_sub(before.program + mark.processor);
                spent.push((ns(mark.firing + others), ns(now.consumer.saturating_sub(before.consumer))));
            }
            before = Some(now);
            Ok(())
        })?;
        trial.stop()?;
        Ok((idle, spent))
    }
}

/// Progress for the user.
fn say(what: &str, system: System) {
    if stderr().is_terminal() {
        eprintln!("{what}: {}", system.name());
    }
}

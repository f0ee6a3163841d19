//! The traced program. It reads loads from its standard input, one a line, and writes a line when it is ready and for each mark. When
//! the input ends, it writes the number of events that its own recorder kept, if it has one.

use crate::load::{Load, Mark, fire};
use crate::system::System;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::io::{self, BufRead, Write};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_peers::peer::{self, dial9, none, record};
use tracepoint_peers::variant::Armed;
use tracepoint_peers::{cpu, tally};
use tracepoint_session::Agent;

const DEADLINE: Duration = Duration::from_secs(30);

/// Writes a line to the process that started the program.
fn say(value: impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(&value)?);
    Ok(io::stdout().flush()?)
}

/// The parts of a program that make it traceable.
struct Traced {
    /// Of this library.
    _agent: Option<Agent>,
    /// A recorder within the program, which adds its events to the tally when it ends.
    recorder: Option<Armed>,
    is_on: fn() -> bool,
    fire: fn(&Load, &mut dyn FnMut(Mark)),
}

impl Traced {
    fn start(system: System) -> Result<Self> {
        let untraced = Self {
            _agent: None,
            recorder: None,
            is_on: || true,
            fire: |load, report| fire::<none::None>(load, report),
        };
        Ok(match system {
            System::None => untraced,
            System::Session | System::Record => Self {
                _agent: Some(Agent::start()?),
                is_on: record::trace_numbers_enabled,
                fire: |load, report| fire::<record::Numbers>(load, report),
                ..untraced
            },
            System::Lttng => lttng(untraced)?,
            System::Dial9 => {
                let variant =
                    peer::all().find(|variant| variant.name == "dial9-record").context("it is in the list")?;
                Self {
                    recorder: Some((variant.arm)()?),
                    fire: |load, report| fire::<dial9::Dial9>(load, report),
                    ..untraced
                }
            }
        })
    }
}

#[cfg(feature = "lttng")]
fn lttng(untraced: Traced) -> Result<Traced> {
    use tracepoint_peers::peer::lttng_session::{DiscardNumbers, load_provider};
    load_provider()?;
    Ok(Traced { is_on: DiscardNumbers::is_on, fire: |load, report| fire::<DiscardNumbers>(load, report), ..untraced })
}

#[cfg(not(feature = "lttng"))]
fn lttng(_: Traced) -> Result<Traced> {
    bail!("built without LTTng-UST (scripts/setup.sh --ci)")
}

/// Runs until the input ends.
pub(crate) fn run(system: System) -> Result<()> {
    // Before any thread is pinned.
    ensure!(!cpu::allowed().is_empty(), "the processors are not known");
    let traced = Traced::start(system)?;
    say("ready")?;
    for line in io::stdin().lock().lines() {
        let load: Load = serde_json::from_str(&line?)?;
        let begun = Instant::now();
        while !(traced.is_on)() {
            if begun.elapsed() > DEADLINE {
                bail!("the event was not switched on");
            }
            thread::sleep(Duration::from_millis(1));
        }
        let mut result = Ok(());
        (traced.fire)(&load, &mut |mark| {
            if result.is_ok() {
                result = say(mark);
            }
        });
        result?;
    }
    tally::take();
    let has_recorder = traced.recorder.is_some();
    drop(traced);
    say(has_recorder.then(|| tally::take().count))
}

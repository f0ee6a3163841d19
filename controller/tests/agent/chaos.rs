//! Processes that start, end, close all descriptors and are killed, and sessions that are created, changed and destroyed, at random; at the
//! end all events are disabled, and every account balances.

use crate::common::{Other, Outcome, again, assert_balances, names, part, until_ready};
use crate::seed;
use crate::traced::{PATIENCE, PAUSE, Place, fire_until, is_traced, spec, traces};
use std::env;
use std::fs::File;
use std::io::stdin;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use tracepoint_reader::RecoverError;
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{Rule, SinkSpec, State};

const RULES: [&str; 5] = ["traced:tick", "traced:tock", "traced:*", "!traced:tock", "nothing:*"];

/// A process that closes all descriptors above 2 after its start, as daemons and sandboxes do, and opens its own files instead.
fn daemon() -> Outcome {
    let own = tempfile::tempdir()?;
    let files = fire_until(|| {
        println!("ready");
        sleep(Duration::from_millis(100));
        for number in 3..1024 {
            // SAFETY: as a program does that does not know the descriptors of its libraries.
            unsafe { libc::close(number) };
        }
        let create =
            |number: u32| File::options().append(true).create_new(true).open(own.path().join(number.to_string()));
        let files: Result<Vec<_>, _> = (0..16).map(create).collect();
        let _ = stdin().lines().count();
        files
    })?;
    for file in files {
        let length = file.metadata().expect("a file of the program was closed").len();
        assert_eq!(length, 0, "something was written into a file of the program");
    }
    Ok(())
}

/// A simple random number generator.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The size of the test: processes and sessions at the same time, and steps.
fn size() -> Result<[usize; 3], Box<dyn std::error::Error>> {
    let Ok(text) = env::var("TRACEPOINT_CHAOS") else { return Ok([5, 3, 60]) };
    let numbers: Result<Vec<usize>, _> = text.split_whitespace().map(str::parse).collect();
    Ok(numbers?.try_into().map_err(|_| "TRACEPOINT_CHAOS='PROCESSES SESSIONS STEPS'")?)
}

struct Chaos {
    place: Place,
    dice: Dice,
    processes: Vec<Other>,
    killed: Vec<u32>,
    made: usize,
    most: [usize; 2],
}

impl Chaos {
    fn step(&mut self) -> Outcome {
        match self.dice.throw(10) {
            0 | 1 if self.processes.len() < self.most[0] => self.start(),
            2 => {
                let Some(process) = self.any_process() else { return Ok(()) };
                assert!(process.end(), "a process ended badly");
            }
            3 => {
                let Some(mut process) = self.any_process() else { return Ok(()) };
                self.killed.push(process.id());
                process.kill();
            }
            4 => return self.create(),
            5 => {
                let Some(name) = self.any_session()? else { return Ok(()) };
                let removed = self.place.controller.session(&name)?.destroy(PATIENCE, false)?;
                assert!(removed.silent.is_empty(), "{:?}", removed.silent);
            }
            _ => return self.change(),
        }
        Ok(())
    }

    fn start(&mut self) {
        let part = ["traced", "daemon"][self.dice.throw(2)];
        let mut command = again("chaos::random_changes_kills_and_damage", part);
        // Hundreds of processes share a processor or two.
        command.env(PAUSE, (200 * self.most[0]).to_string());
        self.processes.push(until_ready(command.env("TRACEPOINT_RUN_DIR", self.place.run_dir())));
    }

    fn any_process(&mut self) -> Option<Other> {
        let count = self.processes.len();
        (count > 0).then(|| self.processes.swap_remove(self.dice.throw(count)))
    }

    fn any_session(&mut self) -> Result<Option<String>, ControlError> {
        let mut names = self.place.controller.sessions()?;
        let count = names.len();
        Ok((count > 0).then(|| names.swap_remove(self.dice.throw(count))))
    }

    fn create(&mut self) -> Outcome {
        if self.place.controller.sessions()?.len() >= self.most[1] {
            return Ok(());
        }
        let name = format!("s{}", self.made);
        self.made += 1;
        let mut spec = spec(&[RULES[self.dice.throw(3)]], &[SinkSpec::ctf(self.place.out(&name)).into()]);
        (spec.channel.ring_size, spec.channel.spares) = (Some(32 << 10), Some(2));
        if self.dice.throw(2) == 0 {
            let mut second = spec.channel.clone().named("second");
            ["discard", "overwrite", "wait"][self.dice.throw(3)].clone_into(&mut second.policy);
            spec.channels.push(second);
        }
        spec.limits.keep_dead = usize::MAX >> 1;
        // In chunks from the beginning, or on request.
        let rotate_every_ms = [None, Some(10)][self.dice.throw(2)];
        if let SinkSpec::Ctf(sink) = &mut spec.sinks[0] {
            sink.rotate_every_ms = rotate_every_ms;
        }
        self.place.controller.create(&name, &spec)?;
        Ok(())
    }

    fn change(&mut self) -> Outcome {
        let Some(name) = self.any_session()? else { return Ok(()) };
        let session = self.place.controller.session(&name)?;
        let (mut rule, what) = (Rule::new(RULES[self.dice.throw(RULES.len())]), self.dice.throw(4));
        let second = (self.dice.throw(2) == 0).then(|| "second".to_owned());
        if self.dice.throw(3) == 0 {
            return match session.rotate() {
                Ok(_) | Err(ControlError::SessionCannotRotate { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            };
        }
        let generation = session.change("chaos", |spec| {
            rule.channel = second.filter(|_| !spec.channels.is_empty());
            match what {
                0 => spec.state = if spec.state == State::Active { State::Stopped } else { State::Active },
                _ if spec.remove_rule(&rule) == 0 => drop(spec.add_rule(&rule).expect("a rule")),
                _ => {}
            }
            Ok(())
        })?;
        // Some changes are not waited for.
        if self.dice.throw(2) == 0 {
            let waited = session.wait(generation, PATIENCE)?;
            assert!(waited.silent.is_empty(), "{:?}", waited.silent);
        }
        Ok(())
    }

    /// Returns whether all processes that have left something in the directory of a session were killed.
    fn are_killed(&self, session: &Path) -> bool {
        let pid = |entry: &String| entry.split('-').next().and_then(|pid| pid.parse().ok());
        names(&session.join("rings")).iter().all(|entry| pid(entry).is_some_and(|pid| self.killed.contains(&pid)))
    }

    /// Ends everything, and checks the remains; returns the numbers of traces.
    fn finish(mut self) -> Result<[usize; 2], Box<dyn std::error::Error>> {
        while let Some(name) = self.any_session()? {
            self.place.controller.session(&name)?.destroy(PATIENCE, false)?;
        }
        assert_eq!(self.place.on(), [""; 0]);
        self.processes.drain(..).for_each(|process| assert!(process.end(), "a process ended badly"));
        assert!(self.place.controller.processes()?.is_empty());
        let mut counts = [0; 2];
        let sessions = self.place.run_dir().join("sessions");
        for name in names(&self.place.temp.path().join("out")) {
            for trace in traces(&self.place.out(&name)) {
                // A process that ends does not wait for its agent to begin a session.
                if names(&trace).is_empty() {
                    continue;
                }
                let was_killed = |pid: &u32| trace.to_string_lossy().contains(&format!("-{pid}-"));
                if !self.killed.iter().any(was_killed)
                    || trace.join(".account/account.json").metadata().is_ok_and(|m| m.len() > 0)
                {
                    assert!(tracepoint_reader::verify(&trace).is_ok(), "no trace: {:?}", tree(&trace));
                    assert_balances(&trace);
                    counts[0] += 1;
                }
            }
        }
        // The remaining directories contain rings of killed processes.
        for name in names(&sessions) {
            let out = self.place.temp.path().join("recovered").join(&name);
            let left = sessions.join(&name);
            let recovered = match tracepoint_reader::recover(&left, &out) {
                // A process was killed while it created its rings.
                Err(RecoverError::NoRings { .. } | RecoverError::NotBegun { .. }) if self.are_killed(&left) => continue,
                recovered => recovered.map_err(|error| format!("{error}: {:?}", tree(&left)))?,
            };
            assert!(recovered.is_complete(), "{recovered:?}");
            for process in recovered.processes {
                assert!(self.killed.contains(&process.pid), "{process:?}");
                assert_balances(&process.output);
                counts[1] += 1;
            }
        }
        Ok(counts)
    }
}

/// Returns all paths below `dir`.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let entries = names(dir).into_iter().map(|name| dir.join(name));
    entries
        .flat_map(|path| if path.is_dir() { [vec![path.clone()], tree(&path)].concat() } else { vec![path] })
        .collect()
}

#[test]
fn random_changes_kills_and_damage() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    if part() == "daemon" {
        return daemon();
    }
    let [processes, sessions, steps] = size()?;
    let most = [processes, sessions];
    let mut chaos = Chaos {
        place: Place::new(),
        dice: Dice(seed::seed()),
        processes: Vec::new(),
        killed: Vec::new(),
        made: 0,
        most,
    };
    for _ in 0..processes {
        chaos.start();
    }
    chaos.create()?;
    for step in 0..steps {
        chaos.step().map_err(|error| format!("step {step}: {error}"))?;
    }
    let [whole, recovered] = chaos.finish()?;
    println!("{whole} traces balance, and {recovered} that were recovered");
    assert!(whole > 0);
    Ok(())
}

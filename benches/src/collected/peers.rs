//! The receiving processes.

use crate::{BARE, COLLECTOR, Outcome, ports};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracepoint_collector::{Collector, Options};

/// The ports of a receiver on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) control: u16,
    pub(crate) data: u16,
}

/// A receiving process, and the directory of its files. Both are removed on drop.
pub(crate) struct Receiver {
    child: Child,
    pub(crate) ports: Ports,
    _directory: TempDir,
}

impl Receiver {
    pub(crate) fn collector(below: &Path) -> Outcome<Self> {
        Self::this_program(below, COLLECTOR)
    }

    pub(crate) fn bare(below: &Path) -> Outcome<Self> {
        Self::this_program(below, BARE)
    }

    fn this_program(below: &Path, role: &str) -> Outcome<Self> {
        let directory = TempDir::new_in(below)?;
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg(role).arg(directory.path()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        Ok(Self { child, ports: ports(&line)?, _directory: directory })
    }

    pub(crate) fn relayd(below: &Path) -> Outcome<Self> {
        let directory = TempDir::new_in(below)?;
        let listeners = [(); 3].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let mut command = Command::new("lttng-relayd");
        let mut ports = Vec::new();
        for (option, listener) in ["control", "data", "live"].into_iter().zip(listeners) {
            let port = listener?.local_addr()?.port();
            command.arg(format!("--{option}-port=tcp://127.0.0.1:{port}"));
            ports.push(port);
        }
        command.arg("-o").arg(directory.path().join("traces")).env("LTTNG_HOME", directory.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child =
            child.map_err(|error| format!("lttng-relayd does not start ({error}); run scripts/setup.sh --ci"))?;
        let receiver = Self { child, ports: Ports { control: ports[0], data: ports[1] }, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(20);
        for port in ports {
            while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
                if Instant::now() > deadline {
                    return Err("lttng-relayd does not listen".into());
                }
                sleep(Duration::from_millis(10));
            }
        }
        Ok(receiver)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a collector with the default settings until it is killed.
pub(crate) fn collect(directory: &Path) -> Outcome {
    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let collector = Collector::bind(Options { control: any, data: any, live: any, ..Options::new(directory) })?;
    let addresses = collector.addresses();
    println!("{} {}", addresses.control.port(), addresses.data.port());
    collector.run(|report| {
        report.messages.iter().filter(|message| !message.contains("began")).for_each(|message| eprintln!("{message}"));
        true
    })?;
    Ok(())
}

//! A relay daemon of LTTng for one test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The daemon, on free ports. It is killed on drop.
pub(crate) struct Relayd {
    child: Child,
    dir: TempDir,
    pub(crate) control_port: u16,
    pub(crate) data_port: u16,
    pub(crate) live_port: u16,
}

impl Relayd {
    /// Starts it, and waits until it accepts connections.
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [control_port, data_port, live_port] = free_ports();
        let child = spawn(dir.path(), [control_port, data_port, live_port]);
        Self { child, dir, control_port, data_port, live_port }
    }

    /// Kills and restarts it on the same ports.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.dir.path(), [self.control_port, self.data_port, self.live_port]);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The directory of the traces of a host.
    pub(crate) fn host(&self, host: &str) -> PathBuf {
        self.dir.path().join("traces").join(host)
    }
}

impl Drop for Relayd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Unused ports.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

fn spawn(dir: &Path, ports: [u16; 3]) -> Child {
    let mut command = Command::new("lttng-relayd");
    for (option, port) in ["control", "data", "live"].into_iter().zip(ports) {
        command.arg(format!("--{option}-port=tcp://127.0.0.1:{port}"));
    }
    // Its other files also go into its home.
    command.arg("-o").arg(dir.join("traces")).env("LTTNG_HOME", dir).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("lttng-relayd is installed (see scripts/setup.sh --ci)");
    let deadline = Instant::now() + Duration::from_secs(20);
    for port in ports {
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "lttng-relayd does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    child
}

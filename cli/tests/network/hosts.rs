//! Hosts: network namespaces, each linked to a central one, where the [proxies](crate::proxy) run. There is no routing between them: all
//! traffic between hosts passes through a proxy.
//!
//! ```text
//!   host 1, 10.77.1.2 ──── 10.77.1.1 ┐
//!   host 2, 10.77.2.2 ──── 10.77.2.1 ├ the middle: proxies
//!   host 3, 10.77.3.2 ──── 10.77.3.1 ┘
//! ```

use crate::skip::skip;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Makes names unique within this process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The hosts of a test; they are removed when this is dropped, with the programs that still run on them.
#[derive(Debug)]
pub(crate) struct Hosts {
    name: String,
    count: u8,
}

impl Hosts {
    /// Creates hosts with the numbers 1 to `count`; `None` if that is not possible and tests may be skipped.
    pub(crate) fn new(count: u8) -> Option<Self> {
        let name = format!("tp{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let hosts = Self { name, count };
        if let Err(reason) = hosts.make() {
            skip(&format!("`ip netns` cannot make hosts ({reason})"), "Run scripts/setup.sh, and the tests as root");
            return None;
        }
        Some(hosts)
    }

    fn make(&self) -> Result<(), String> {
        let middle = self.namespace(0);
        ip(&format!("netns add {middle}"))?;
        ip(&format!("-n {middle} link set lo up"))?;
        for host in 1..=self.count {
            let name = self.namespace(host);
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link add eth0 type veth peer name host{host} netns {middle}"))?;
            for (namespace, device, end) in [(&name, "eth0".to_owned(), 2), (&middle, format!("host{host}"), 1)] {
                ip(&format!("-n {namespace} address add 10.77.{host}.{end}/24 dev {device}"))?;
                ip(&format!("-n {namespace} link set {device} up"))?;
            }
            ip(&format!("-n {name} route add default via 10.77.{host}.1"))?;
        }
        Ok(())
    }

    /// The name of a host for `ip netns exec`; 0 is the middle.
    pub(crate) fn namespace(&self, host: u8) -> String {
        format!("{}-{host}", self.name)
    }

    /// The address of a host.
    pub(crate) fn address(host: u8) -> String {
        format!("10.77.{host}.2")
    }

    /// The address at which a host sees the middle.
    pub(crate) fn middle(host: u8) -> String {
        format!("10.77.{host}.1")
    }

    /// A program on a host; the host name is `host1` and so on.
    pub(crate) fn command(&self, host: u8, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), "unshare", "--uts", "sh", "-c"]);
        command.arg(format!("hostname host{host}; exec \"$@\"")).args(["sh", program]);
        command
    }

    /// Runs `make` in the middle, for example to open sockets there.
    pub(crate) fn in_the_middle<T: Send>(&self, make: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.namespace(0))).expect("the namespace");
        // Threads have their own namespace, and sockets belong to the namespace in which they were opened.
        let make = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("entering a network namespace");
            make()
        };
        thread::scope(|scope| scope.spawn(make).join().expect("it does not panic"))
    }

    /// Disconnects or reconnects the link of a host. Connections stay open, but nothing arrives in between.
    pub(crate) fn set_cable(&self, host: u8, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        ip(&format!("-n {} link set host{host} {state}", self.namespace(0))).expect("a link");
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in 0..=self.count {
            let name = self.namespace(host);
            if let Ok(Output { stdout, .. }) = Command::new("ip").args(["netns", "pids", &name]).output() {
                let pids = String::from_utf8_lossy(&stdout).into_owned();
                let _ = Command::new("kill").arg("-9").args(pids.split_whitespace()).output();
            }
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

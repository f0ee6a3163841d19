//! Three servers of NATS with `JetStream`, which are one cluster.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Outcome;
use crate::programs::{Running, wait_for};

/// The servers. Each has a port for clients and one for its state.
#[derive(Debug)]
pub(crate) struct Brokers {
    servers: Vec<Server>,
}

#[derive(Debug)]
struct Server {
    running: Option<Running>,
    place: PathBuf,
    port: u16,
    monitor: u16,
}

/// A port that is free now.
pub(crate) fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Brokers {
    /// Starts them. Their files are below `place`.
    pub(crate) fn start(place: &Path, count: usize) -> Outcome<Self> {
        let ports = (0..3 * count).map(|_| free_port()).collect::<Outcome<Vec<_>>>()?;
        let routes: Vec<_> = ports[2 * count..].iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut brokers = Self { servers: Vec::new() };
        for number in 0..count {
            let place = place.join(format!("broker{number}"));
            fs::create_dir_all(&place)?;
            let [port, monitor, route] = [0, 1, 2].map(|of| ports[of * count + number]);
            let cluster =
                format!("cluster {{ name: fleet, listen: \"127.0.0.1:{route}\", routes: [{}] }}\n", routes.join(", "));
            let config = format!(
                "server_name: broker{number}\nhost: 0.0.0.0\nport: {port}\nhttp: \"127.0.0.1:{monitor}\"\n\
                 jetstream {{ store_dir: \"{}\" }}\n{}",
                place.join("store").display(),
                if count > 1 { &cluster } else { "" }
            );
            fs::write(place.join("nats.conf"), config)?;
            brokers.servers.push(Server { running: None, place, port, monitor });
            brokers.restart(number)?;
        }
        Ok(brokers)
    }

    /// Starts a server, with the files that it has.
    pub(crate) fn restart(&mut self, number: usize) -> Outcome {
        let server = &mut self.servers[number];
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(server.place.join("nats.conf"));
        server.running = Some(Running::start(&mut command, &server.place.join("server"))?);
        let port = server.port;
        wait_for("nats-server listens", || Ok(TcpStream::connect(("127.0.0.1", port)).ok()))?;
        Ok(())
    }

    pub(crate) fn kill(&mut self, number: usize) -> Outcome {
        self.servers[number].running.as_mut().map_or(Ok(()), Running::kill)
    }

    /// Ends all of them. Returns their processor time in seconds.
    pub(crate) fn end(&mut self) -> Outcome<f64> {
        let running = self.servers.iter_mut().filter_map(|server| server.running.as_mut());
        running.map(|running| Ok(running.interrupt()?.1)).sum()
    }

    /// What clients are given who see the servers at this address.
    pub(crate) fn url(&self, address: &str) -> String {
        let urls: Vec<_> = self.servers.iter().map(|server| format!("nats://{address}:{}", server.port)).collect();
        format!("{}?replicas={}", urls.join(","), self.servers.len())
    }

    /// How many messages the stream of traces has, by the server that has the most; `None` if none can tell.
    pub(crate) fn messages(&self) -> Option<u64> {
        self.servers.iter().filter_map(|server| messages(server.monitor)).max()
    }
}

fn messages(monitor: u16) -> Option<u64> {
    let mut connection = TcpStream::connect(("127.0.0.1", monitor)).ok()?;
    connection.write_all(b"GET /jsz?streams=true HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let state: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    let accounts =
        state["account_details"].as_array()?.iter().filter_map(|account| account["stream_detail"].as_array());
    accounts.flatten().find(|stream| stream["name"] == "TRACEPOINT")?["state"]["messages"].as_u64()
}

//! A cluster of NATS servers with `JetStream`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Outcome;
use super::programs::{ChildProgram, wait_for};

/// The servers of the cluster. Each has a port for clients and one for monitoring.
#[derive(Debug)]
pub(crate) struct Brokers {
    servers: Vec<Server>,
}

#[derive(Debug)]
struct Server {
    running: Option<ChildProgram>,
    place: PathBuf,
    port: u16,
    monitor: u16,
}

/// A port that is currently free.
pub(crate) fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Brokers {
    /// Starts `count` servers, whose files are in `place`.
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

    /// Starts a server again with its existing files.
    pub(crate) fn restart(&mut self, number: usize) -> Outcome {
        let server = &mut self.servers[number];
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(server.place.join("nats.conf"));
        server.running = Some(ChildProgram::start(&mut command, &server.place.join("server"))?);
        let port = server.port;
        wait_for("nats-server listens", || Ok(TcpStream::connect(("127.0.0.1", port)).ok()))?;
        Ok(())
    }

    pub(crate) fn kill(&mut self, number: usize) -> Outcome {
        self.servers[number].running.as_mut().map_or(Ok(()), ChildProgram::kill)
    }

    /// Stops all servers. Returns their processor time in seconds.
    pub(crate) fn end(&mut self) -> Outcome<f64> {
        let running = self.servers.iter_mut().filter_map(|server| server.running.as_mut());
        running.map(|running| Ok(running.interrupt()?.1)).sum()
    }

    /// The URL for clients that reach the servers at `address`.
    pub(crate) fn url(&self, address: &str) -> String {
        let urls: Vec<_> = self.servers.iter().map(|server| format!("nats://{address}:{}", server.port)).collect();
        format!("{}?replicas={}", urls.join(","), self.servers.len())
    }

    /// Number of messages in the stream of traces, as reported by the server with the highest count; `None` if no server answers.
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

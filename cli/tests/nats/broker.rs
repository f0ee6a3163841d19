//! `nats-server`, and a connection to it for inspecting its state.

use crate::programs::Running;
use crate::skip::skip;
use crate::wait_for;
use async_nats::jetstream::{self, stream};
use std::fs;
use std::future::Future;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A server with `JetStream`, on the loopback interface.
pub(crate) struct Broker {
    server: Option<Running>,
    place: PathBuf,
    config: String,
    port: u16,
}

/// A currently free port.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// True if `nats-server` is installed; otherwise the test is skipped.
pub(crate) fn is_there() -> bool {
    let is_there = Command::new("nats-server").arg("--version").output().is_ok();
    if !is_there {
        skip("there is no nats-server", "Install it (scripts/setup.sh --ci)");
    }
    is_there
}

impl Broker {
    /// Starts a server that stores its files below `place`.
    pub(crate) fn start(place: &Path) -> Self {
        Self::with(place, "")
    }

    /// The same, with more settings.
    pub(crate) fn with(place: &Path, settings: &str) -> Self {
        Self::member(place, "one", free_port(), settings)
    }

    /// A server with this name.
    pub(crate) fn member(place: &Path, name: &str, port: u16, settings: &str) -> Self {
        let place = place.join(name);
        fs::create_dir_all(&place).unwrap();
        let store = place.join("store");
        let config = format!(
            "server_name: {name}\nhost: 127.0.0.1\nport: {port}\njetstream {{ store_dir: \"{}\" }}\n{settings}\n",
            store.display()
        );
        let mut broker = Self { server: None, place, config, port };
        broker.restart();
        broker
    }

    /// Restarts the server with its existing files.
    pub(crate) fn restart(&mut self) {
        let config = self.place.join("nats.conf");
        fs::write(&config, &self.config).unwrap();
        let mut command = Command::new("nats-server");
        command.arg("-c").arg(config);
        self.server = Some(Running::start(&mut command, &self.place.join("server")));
        let port = self.port;
        wait_for("nats-server listens", || TcpStream::connect(("127.0.0.1", port)).ok());
    }

    pub(crate) fn kill(&mut self) {
        self.server = None;
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Runs a request on it.
    pub(crate) fn ask<T, F: Future<Output = T>>(&self, ask: impl FnOnce(jetstream::Context) -> F) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(self.url()).await.unwrap();
            ask(jetstream::new(client)).await
        })
    }

    /// The state of the stream of traces.
    pub(crate) fn state(&self) -> stream::State {
        self.ask(|context| async move { context.get_stream("TRACEPOINT").await.unwrap().cached_info().state.clone() })
    }

    /// Creates the stream of traces before a sender does.
    pub(crate) fn create_stream(&self, change: impl FnOnce(&mut stream::Config)) {
        let mut config = stream::Config {
            name: "TRACEPOINT".to_owned(),
            subjects: vec!["tracepoint.>".to_owned()],
            discard: stream::DiscardPolicy::New,
            duplicate_window: Duration::from_secs(120),
            ..stream::Config::default()
        };
        change(&mut config);
        self.ask(|context| async move { drop(context.create_stream(config).await.unwrap()) });
    }
}

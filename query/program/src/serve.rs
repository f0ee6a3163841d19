//! `tracectl query --serve ADDRESS:PORT PATH`.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytesize::ByteSize;
use clap::Args;
use tracepoint_flight::{Opener, ServeOptions, Token, serve};
use tracepoint_query::EngineOptions;
use tracepoint_store::Store;

use crate::{END, Outcome, VerbResult, output, place};

/// Options of the server.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Serve queries of a store or a trace by Arrow Flight SQL, until an interrupt. An address that is not loopback needs a token
    #[arg(id = "serve", long = "serve", num_args = 2, value_names = ["ADDRESS:PORT", "PATH"], conflicts_with_all = ["sql", "store", "tables", "json", "csv", "cluster"])]
    address_and_path: Option<Vec<PathBuf>>,
    /// The token that clients of --serve must send: as `authorization: Bearer TOKEN`, or as the password of any user
    #[arg(long, value_name = "TOKEN", env = "TRACECTL_QUERY_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Maximum number of queries that --serve runs at a time, each with the memory of --memory; more wait
    #[arg(long, value_name = "N", default_value_t = 4, requires = "serve")]
    queries: usize,
}

impl Serve {
    pub(crate) fn is_given(&self) -> bool {
        self.address_and_path.is_some()
    }

    pub(crate) fn run(&self, memory: ByteSize) -> VerbResult {
        let Some([address, store]) = self.address_and_path.as_deref() else { unreachable!("clap requires two values") };
        let bind = address.to_str().and_then(|address| address.parse::<SocketAddr>().ok());
        let bind = bind.ok_or_else(|| format!("{}: not ADDRESS:PORT, such as 127.0.0.1:50060", address.display()))?;
        let options = ServeOptions { bind, token: self.token.clone().map(Token::new), queries: self.queries };
        // A store in S3 has connections of its own: keep it until the end.
        let remote = place::remote(Some(store))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let served = runtime.block_on(serve(options, opener(store, remote.as_ref(), memory), |address| {
            // Ignore a failed write: the parent process has closed the pipe.
            _ = output::line(&format!("listening on {address}"));
        }));
        runtime.shutdown_timeout(END);
        served.map_err(Box::<dyn Error>::from)?;
        Ok(Outcome::Interrupted)
    }
}

fn opener(store: &Path, remote: Option<&Store>, memory: ByteSize) -> Opener {
    let (store, objects) = (Arc::new(store.to_owned()), remote.and_then(Store::objects));
    Box::new(move || {
        let (store, objects) = (Arc::clone(&store), objects.clone());
        let mut options = EngineOptions::default();
        options.memory = usize::try_from(memory.as_u64()).unwrap_or(usize::MAX);
        Box::pin(async move { place::open(&store, objects, options).await })
    })
}

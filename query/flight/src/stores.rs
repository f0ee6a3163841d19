//! The store that is served. Its files are listed again from time to time: traces come and go while it is served.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracepoint_query::{Engine, QueryError};

/// Opens the store.
pub type Opener = Box<dyn Fn() -> BoxFuture<'static, Result<Engine, QueryError>> + Send + Sync>;

/// After this time, the files are listed again for the next query.
const FRESH: Duration = Duration::from_secs(10);

pub(crate) struct Stores {
    open: Opener,
    current: Mutex<(Instant, Arc<Engine>)>,
}

impl Stores {
    pub(crate) async fn open(open: Opener) -> Result<Self, QueryError> {
        let engine = Arc::new(open().await?);
        Ok(Self { open, current: Mutex::new((Instant::now(), engine)) })
    }

    /// The store with the files that it had a moment ago.
    pub(crate) async fn engine(&self) -> Result<Arc<Engine>, QueryError> {
        let mut current = self.current.lock().await;
        if current.0.elapsed() > FRESH {
            *current = (Instant::now(), Arc::new((self.open)().await?));
        }
        Ok(Arc::clone(&current.1))
    }
}

//! The served store. Its files are listed again periodically, because traces are added and removed while it is served.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracepoint_query::{Engine, QueryError};

/// Opens the store.
pub type Opener = Box<dyn Fn() -> BoxFuture<'static, Result<Engine, QueryError>> + Send + Sync>;

/// Maximum age of the file list; an older one is renewed for the next query.
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

    /// An engine whose file list is at most [`FRESH`] old.
    pub(crate) async fn engine(&self) -> Result<Arc<Engine>, QueryError> {
        let mut current = self.current.lock().await;
        if current.0.elapsed() > FRESH {
            *current = (Instant::now(), Arc::new((self.open)().await?));
        }
        Ok(Arc::clone(&current.1))
    }
}

//! The lease: one process's right to replace and remove files.
//!
//! The object `.tracepoint/maintenance` names the holder, and the current replacement. It is changed only by requests that fail if another process
//! has changed it since. The holder renews it periodically. A waiting process considers the holder dead when it has not seen a renewal for
//! [`Client::expiry`], by its own clock. If the holder was merely slow, its next change of the object fails, so it replaces nothing any more.
//!
//! A replacement is committed by writing it into the object. Any process may then execute it, also repeatedly.

use std::sync::Arc;
use std::time::Instant;

use object_store::UpdateVersion;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::client::Client;
use super::record::{Upload, json, unique};
use crate::error::StoreError;

const PATH: &str = ".tracepoint/maintenance";

/// New files, and the files that they replace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Replacement {
    pub(super) add: Vec<Upload>,
    pub(super) remove: Vec<String>,
}

/// The contents of the object.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// The holder of the lease.
    holder: Option<String>,
    /// The current replacement.
    replacement: Option<Replacement>,
    /// Number of renewals, which makes each version different.
    renewals: u64,
}

/// The state that this process wrote last, and its version; no version after another process has taken over the lease.
type Held = (State, Option<UpdateVersion>);

/// The right to replace and remove files.
pub(super) struct Lease {
    client: Client,
    held: Arc<Mutex<Held>>,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Waits for the lease.
    pub(super) async fn acquire(client: &Client) -> Result<Self, StoreError> {
        let mine = State { holder: Some(unique()), ..State::default() };
        let mut seen: Option<(UpdateVersion, Instant)> = None;
        let version = loop {
            let Some((state, version)) = client.parsed::<State>(PATH).await? else {
                client.create(PATH, &json(&mine)).await?;
                continue;
            };
            if state.holder == mine.holder {
                break version;
            }
            let since = match &seen {
                Some((known, since)) if known.e_tag == version.e_tag => *since,
                _ => seen.insert((version.clone(), Instant::now())).1,
            };
            if state.holder.is_some() && since.elapsed() < client.expiry {
                sleep(client.expiry / 60).await;
                continue;
            }
            if let Some(replacement) = &state.replacement {
                apply(client, replacement).await?;
            }
            if let Some(version) = client.update(PATH, &json(&mine), version).await? {
                break version;
            }
        };
        let held = Arc::new(Mutex::new((mine, Some(version))));
        let (other, renewed) = (client.clone(), Arc::clone(&held));
        let renewal = client.runtime.spawn(async move {
            loop {
                sleep(other.expiry / 6).await;
                // Ignore errors here: the next change reports them.
                drop(write(&other, &mut *renewed.lock().await, |_| {}).await);
            }
        });
        Ok(Self { client: client.clone(), held, renewal })
    }

    /// Replaces files. Returns `false` if another process has the lease now, or a file cannot be made visible.
    pub(super) async fn replace(&self, replacement: &Replacement) -> Result<bool, StoreError> {
        let mut held = self.held.lock().await;
        if !write(&self.client, &mut held, |state| state.replacement = Some(replacement.clone())).await? {
            return Ok(false);
        }
        let is_made = apply(&self.client, replacement).await?;
        write(&self.client, &mut held, |state| state.replacement = None).await?;
        Ok(is_made)
    }

    /// Stops the renewal, as if the process was suspended.
    #[cfg(test)]
    pub(super) fn suspend(&self) {
        self.renewal.abort();
    }

    /// Renews the lease. Returns whether this process still holds it.
    pub(super) async fn renew(&self) -> Result<bool, StoreError> {
        write(&self.client, &mut *self.held.lock().await, |_| {}).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Self { client, held, renewal } = self;
        let released = async {
            renewal.abort();
            _ = renewal.await;
            write(client, &mut *held.lock().await, |state| state.holder = None).await
        };
        // Ignore an error: the lease then expires.
        drop(client.block(released));
    }
}

/// Changes the object, if this process holds the lease.
async fn write(client: &Client, held: &mut Held, change: impl FnOnce(&mut State)) -> Result<bool, StoreError> {
    let Some(version) = held.1.clone() else { return Ok(false) };
    let mut state = held.0.clone();
    state.renewals += 1;
    change(&mut state);
    held.1 = client.update(PATH, &json(&state), version).await?;
    held.0 = state;
    Ok(held.1.is_some())
}

/// Executes the remaining steps of a replacement. Files are removed only after all new files are visible.
async fn apply(client: &Client, replacement: &Replacement) -> Result<bool, StoreError> {
    let is_made = client.complete_uploads(&replacement.add).await?;
    if is_made {
        client.delete(replacement.remove.clone()).await?;
    }
    Ok(is_made)
}

/// Executes the remaining steps of a replacement whose process may have died.
pub(super) async fn recover(client: &Client) -> Result<(), StoreError> {
    if let Some((State { replacement: Some(replacement), .. }, _)) = client.parsed::<State>(PATH).await? {
        apply(client, &replacement).await?;
    }
    Ok(())
}

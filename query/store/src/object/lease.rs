//! The right of one process to replace and remove files.
//!
//! The object `.tracepoint/maintenance` names the process that has the right, and what it replaces. It is changed only by requests that fail if
//! another process has changed it since. The holder rewrites it now and then; one that has not for
//! [`Client::expiry`], by the clock of the process
//! that waits, is taken for dead. Should it only have been slow, its next change of the object fails, so that it replaces nothing any more.
//!
//! A replacement is committed by its being written there. Any process may then do it, and each may do it again.

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

/// Files that replace others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Replacement {
    pub(super) add: Vec<Upload>,
    pub(super) remove: Vec<String>,
}

/// The contents of the object.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    /// Who has the right.
    holder: Option<String>,
    /// What is being replaced.
    replacement: Option<Replacement>,
    /// How often it was renewed, so that each version differs.
    renewals: u64,
}

/// The state as this process has written it, and its version; no version if another process has the right.
type Held = (State, Option<UpdateVersion>);

/// The right to replace and remove files.
pub(super) struct Lease {
    client: Client,
    held: Arc<Mutex<Held>>,
    renewal: JoinHandle<()>,
}

impl Lease {
    /// Waits for the right.
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
                // An error is reported by the next change.
                drop(write(&other, &mut *renewed.lock().await, |_| {}).await);
            }
        });
        Ok(Self { client: client.clone(), held, renewal })
    }

    /// Replaces files; `false` if another process has the right now, or a file cannot be made visible.
    pub(super) async fn replace(&self, replacement: &Replacement) -> Result<bool, StoreError> {
        let mut held = self.held.lock().await;
        if !write(&self.client, &mut held, |state| state.replacement = Some(replacement.clone())).await? {
            return Ok(false);
        }
        let is_made = apply(&self.client, replacement).await?;
        write(&self.client, &mut held, |state| state.replacement = None).await?;
        Ok(is_made)
    }

    /// Ends the renewal, as if the process was suspended.
    #[cfg(test)]
    pub(super) fn suspend(&self) {
        self.renewal.abort();
    }

    /// Whether this process still has the right.
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
        // Another process has to wait if it fails.
        drop(client.block(released));
    }
}

/// Changes the object, if this process has the right.
async fn write(client: &Client, held: &mut Held, change: impl FnOnce(&mut State)) -> Result<bool, StoreError> {
    let Some(version) = held.1.clone() else { return Ok(false) };
    let mut state = held.0.clone();
    state.renewals += 1;
    change(&mut state);
    held.1 = client.update(PATH, &json(&state), version).await?;
    held.0 = state;
    Ok(held.1.is_some())
}

/// Does what is not done yet of a replacement. Nothing is removed unless all new files are there.
async fn apply(client: &Client, replacement: &Replacement) -> Result<bool, StoreError> {
    let is_made = client.complete_uploads(&replacement.add).await?;
    if is_made {
        client.delete(replacement.remove.clone()).await?;
    }
    Ok(is_made)
}

/// Does what is not done yet of a replacement whose process may have died.
pub(super) async fn recover(client: &Client) -> Result<(), StoreError> {
    if let Some((State { replacement: Some(replacement), .. }, _)) = client.parsed::<State>(PATH).await? {
        apply(client, &replacement).await?;
    }
    Ok(())
}

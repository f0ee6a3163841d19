//! Removes the oldest days of a store in S3, and the remains of dead writers.

use std::io;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, UpdateVersion};

use super::client::{CONCURRENT, Client};
use super::key;
use super::lease::Lease;
use super::record::{Claim, Record, TRACES, TRANSACTIONS, UPLOADS, Upload, json};
use crate::error::StoreError;
use crate::files::Parts;
use crate::plan::{Plan, RetentionSummary, day_of};

/// An uncommitted transaction is aborted after this time.
const ABORTED_AFTER: Duration = Duration::from_secs(24 * 3600);
/// The record of an aborted transaction is kept for this time: its process may only be suspended.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);
/// Number of objects deleted between two checks that this process still holds the lease.
const BATCH: usize = 1000;

/// Removes the files of these days, and releases the traces that have no files left, so that they can be stored again. A trace completed meanwhile is
/// removed completely or not at all: the files are listed repeatedly, each time after the list of completed traces, until no more are found.
pub(super) async fn retain(
    client: &Client,
    lease: &Lease,
    plan: &dyn Fn(&Parts) -> Plan,
) -> Result<RetentionSummary, StoreError> {
    abort_uploads(client).await?;
    let (mut removed, mut end) = (RetentionSummary::default(), String::new());
    loop {
        client.recover().await?;
        let traces = stored_traces(client).await?;
        let (parts, others) = client.parts().await?;
        let plan = plan(&parts);
        // Finish any day whose removal has started.
        end = plan.end().unwrap_or_default().max(end);
        let dated = parts.iter().filter_map(|(directory, files)| Some((day_of(directory)?.1, files)));
        let old: Vec<_> = dated.clone().filter(|(day, _)| **day < *end).collect();
        if old.is_empty() && !others {
            let oldest = dated.map(|(day, _)| day).min();
            let gone = traces.into_iter().filter(|trace| oldest.is_none_or(|oldest| *trace.last_day < *oldest));
            release(client, gone.collect()).await?;
            return Ok(RetentionSummary { bytes: plan.retained.bytes, ..removed });
        }
        for (day, files) in &old {
            if !removed.removed_days.iter().any(|known| known == day) {
                removed.removed_days.push((*day).to_owned());
            }
            removed.removed_files += files.len() as u64;
            removed.removed_bytes += files.iter().map(|file| file.bytes).sum::<u64>();
        }
        removed.removed_days.sort();
        let old: Vec<_> = old.into_iter().flat_map(|(_, files)| files).map(|file| key(&file.path)).collect();
        for batch in old.chunks(BATCH) {
            if !lease.renew().await? {
                let text = "another process has taken over: repeat the command to remove the rest";
                return Err(StoreError::io(&client.url(""))(io::Error::other(text)));
            }
            client.delete(batch.to_vec()).await?;
        }
    }
}

/// A completed trace.
struct StoredTrace {
    path: String,
    last_day: String,
    version: UpdateVersion,
}

/// The completed traces, except those without a time.
async fn stored_traces(client: &Client) -> Result<Vec<StoredTrace>, StoreError> {
    let read = |(path, _): (String, ObjectMeta)| async move {
        let Some((claim, version)) = client.parsed::<Claim>(&path).await? else { return Ok(None) };
        let last_day = claim.last_day.filter(|day| !day.is_empty());
        Ok::<_, StoreError>(last_day.map(|last_day| StoredTrace { path, last_day, version }))
    };
    let listed = client.list(TRACES).await?;
    let traces: Vec<_> = stream::iter(listed).map(read).buffer_unordered(CONCURRENT).try_collect().await?;
    Ok(traces.into_iter().flatten().collect())
}

/// Releases traces, so that they can be stored again.
async fn release(client: &Client, traces: Vec<StoredTrace>) -> Result<(), StoreError> {
    let free = json(&Claim::default());
    for trace in traces {
        client.update(&trace.path, &free, trace.version).await?;
    }
    Ok(())
}

/// Aborts the uploads of processes that died long ago.
async fn abort_uploads(client: &Client) -> Result<(), StoreError> {
    let now = SystemTime::now();
    let is_older = |meta: &ObjectMeta, age| now.duration_since(meta.last_modified.into()).is_ok_and(|past| past > age);
    for (path, meta) in client.list(UPLOADS).await? {
        let Some(id) = path.strip_prefix(UPLOADS).and_then(|rest| rest.trim_matches('/').split('/').next()) else {
            continue;
        };
        if !is_older(&meta, ABORTED_AFTER) {
            continue;
        }
        if let Some(Record::Aborted) = client.decide(id, &Record::Aborted).await? {
            if let Some((upload, _)) = client.parsed::<Upload>(&path).await? {
                client.abort_upload(&upload.path, &upload.id).await?;
            }
            client.delete(vec![path]).await?;
        }
    }
    let forgotten = client.list(TRANSACTIONS).await?.into_iter().filter(|(_, meta)| is_older(meta, FORGOTTEN_AFTER));
    for (path, _) in forgotten {
        if let Some((Record::Aborted, _)) = client.parsed::<Record>(&path).await? {
            client.delete(vec![path]).await?;
        }
    }
    Ok(())
}

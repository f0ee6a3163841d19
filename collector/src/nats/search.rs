//! Finds traces to collect: those that the broker has messages of and that no collector holds a lease on.

use super::broker::{Broker, BrokerError};
use super::context::CollectorContext;
use super::lease::{Lease, OwnedLease, State};
use super::owner::Owner;
use super::stale;
use super::trace;
use crate::broker_status::CollectStatus;
use crate::options::NatsOptions;
use crate::shared::ServerState;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracepoint_wire::nats::TraceSubject;

/// Interval of searches.
const PAUSE: Duration = Duration::from_millis(500);
/// Delay per trace that a collector already has, so that others take new ones first; and maximum number of such delays.
const SHARE: Duration = Duration::from_millis(20);
const MAX_SHARES: u32 = 50;

/// The revision of each lease held by another collector, and since when it has not changed.
type Seen = BTreeMap<String, (u64, Instant)>;

/// Collects traces until the collector ends.
pub(crate) async fn search(shared: Rc<ServerState>, status: Rc<CollectStatus>, settings: NatsOptions, owner: Owner) {
    let former = stale::find(&shared.hub.borrow().output);
    let of = Rc::new(CollectorContext {
        shared,
        status,
        settings,
        owner,
        mine: RefCell::default(),
        former: RefCell::new(former),
    });
    let Some(broker) = connect(&of).await else { return };
    let (mut seen, mut told) = (Seen::new(), None);
    let mut tasks = JoinSet::new();
    while !of.status.is_ending.get() {
        while tasks.try_join_next().is_some() {}
        of.status.is_connected.set(broker.is_connected());
        match round(&of, &broker, &mut seen, &mut tasks).await {
            Ok(()) => told = None,
            // Report an error once, even if it repeats.
            Err(error) if told.as_ref() != Some(&error.to_string()) => {
                of.say(error.to_string());
                told = Some(error.to_string());
            }
            Err(_) => {}
        }
        sleep(PAUSE).await;
    }
    while tasks.join_next().await.is_some() {}
}

/// Connects to the broker and waits for its stream. `None` if the collector ends first.
async fn connect(of: &CollectorContext) -> Option<Broker> {
    let mut told = None;
    let mut client = None;
    while !of.status.is_ending.get() {
        let why = match &client {
            None => match Broker::connect(&of.settings.broker).await {
                Ok(connected) => {
                    client = Some(connected);
                    continue;
                }
                Err(error) => format!("{error}; it is tried again"),
            },
            Some(client) => match Broker::open(client.clone(), &of.settings.broker).await {
                Ok(Some(broker)) => {
                    of.say(format!("takes traces from {}", of.settings.broker));
                    return Some(broker);
                }
                Ok(None) => "the broker has no stream for traces; the first sender creates it".to_owned(),
                Err(error) => format!("{error}; it is tried again"),
            },
        };
        if told.as_ref() != Some(&why) {
            of.say(why.clone());
            told = Some(why);
        }
        sleep(PAUSE).await;
    }
    None
}

async fn round(
    of: &Rc<CollectorContext>,
    broker: &Broker,
    seen: &mut Seen,
    tasks: &mut JoinSet<()>,
) -> Result<(), BrokerError> {
    settle(of, broker).await?;
    let traces = broker.traces().await?;
    let keys: BTreeSet<&str> = traces.iter().map(TraceSubject::key).collect();
    seen.retain(|key, _| keys.contains(key.as_str()));
    for trace in &traces {
        let key = trace.key();
        if of.status.is_ending.get() || of.mine.borrow().contains(key) {
            continue;
        }
        let found = match Lease::read(broker, key).await {
            Ok(found) => found,
            Err(error) => {
                of.say(error.to_string());
                continue;
            }
        };
        if !is_free(of, broker, (trace, found.as_ref()), seen).await? {
            continue;
        }
        if found.as_ref().is_some_and(|(lease, _)| lease.state == State::Done) {
            // Its owner ended before it could remove the messages.
            broker.purge_all(trace).await?;
            continue;
        }
        let count = u32::try_from(of.mine.borrow().len()).unwrap_or(u32::MAX);
        if found.as_ref().is_none_or(|(lease, _)| lease.owner != of.owner.id) {
            sleep(SHARE * count.min(MAX_SHARES)).await;
        }
        let lease = found.as_ref().map(|(lease, revision)| (lease, *revision));
        let Some(held) = OwnedLease::take(broker, key, &of.owner.id, lease).await? else { continue };
        of.mine.borrow_mut().insert(key.to_owned());
        let (task_of, broker, trace, key) = (Rc::clone(of), broker.clone(), trace.clone(), key.to_owned());
        tasks.spawn_local(async move {
            Box::pin(trace::collect(Rc::clone(&task_of), broker, trace, held)).await;
            task_of.former.borrow_mut().retain(|former| former.key != key);
            task_of.mine.borrow_mut().remove(&key);
        });
    }
    Ok(())
}

/// Returns whether this collector may take a trace.
async fn is_free(
    of: &CollectorContext,
    broker: &Broker,
    (trace, found): (&TraceSubject, Option<&(Lease, u64)>),
    seen: &mut Seen,
) -> Result<bool, BrokerError> {
    let Some((lease, revision)) = found else { return Ok(true) };
    let key = trace.key();
    match lease.state {
        State::Done => Ok(true),
        _ if !lease.has_room(broker.max_payload()) && lease.owner != of.owner.id => Ok(false),
        State::Released => Ok(broker.last(trace).await?.is_some_and(|last| last > lease.sequence)),
        State::Held if lease.owner == of.owner.id => Ok(true),
        State::Held => {
            let now = Instant::now();
            let (known, since) = *seen.entry(key.to_owned()).or_insert((*revision, now));
            if known != *revision {
                seen.insert(key.to_owned(), (*revision, now));
                return Ok(false);
            }
            Ok(now.duration_since(since) >= of.settings.lease)
        }
    }
}

/// Settles the directories of an earlier collector whose leases others have taken.
async fn settle(of: &CollectorContext, broker: &Broker) -> Result<(), BrokerError> {
    let former = of.former.borrow().clone();
    for one in former.into_iter().filter(|one| !of.mine.borrow().contains(&one.key)) {
        let (is_settled, message) = one.settle(broker, &of.owner.id).await?;
        if let Some(message) = message {
            of.say(message);
        }
        if is_settled {
            of.former.borrow_mut().retain(|other| !other.is(&one));
        }
    }
    Ok(())
}

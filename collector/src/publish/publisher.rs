//! Finds the traces to publish, and connects to the broker.

use super::context::PublisherContext;
use super::link::{Link, LinkError};
use super::session::{self, End};
use crate::broker_status::PublishStatus;
use crate::options::PublishOptions;
use crate::shared::ServerState;
use crate::spool::{LOG, Spool};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Interval of checks for new data.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause before a new connection attempt.
const AGAIN: Duration = Duration::from_secs(1);
/// Depth of session directories below the output directory: host, session, process.
const DEEPEST: usize = 3;

struct Publisher {
    of: Rc<PublisherContext>,
    /// Traces without a connection, traces with a task, and unreadable traces.
    idle: BTreeMap<PathBuf, Spool>,
    active: BTreeSet<PathBuf>,
    failed: BTreeSet<PathBuf>,
    /// The last error reported to the user.
    told: Option<String>,
    has_connected: bool,
}

/// Publishes until the collector ends.
pub(crate) async fn publish(shared: Rc<ServerState>, status: Rc<PublishStatus>, settings: PublishOptions) {
    let output = shared.hub.borrow().output.clone();
    let mut publisher = Publisher {
        of: Rc::new(PublisherContext::new(shared, status, settings)),
        idle: BTreeMap::new(),
        active: BTreeSet::new(),
        failed: BTreeSet::new(),
        told: None,
        has_connected: false,
    };
    let mut found = Vec::new();
    find(&output, DEEPEST, &mut found);
    for root in found {
        publisher.admit(root);
    }
    while !publisher.is_finished() {
        let why = match publisher.connect().await {
            Ok(link) => publisher.serve(&Rc::new(link)).await,
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            publisher.tell(why);
            publisher.pass(AGAIN).await;
        }
    }
}

/// Finds the directories of sessions that are not published completely.
fn find(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if directory.join(LOG).is_file() {
        found.push(directory.to_owned());
    } else if depth > 0 {
        // The repair at the start has already reported directories that cannot be read.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                find(&entry.path(), depth - 1, found);
            }
        }
    }
}

impl Publisher {
    fn broker(&self) -> &tracepoint_wire::nats::Broker {
        &self.of.settings.broker
    }

    /// Reports an error unless it was the last one reported.
    fn tell(&mut self, why: String) {
        if self.told.as_ref() != Some(&why) && !self.of.status.is_over() {
            self.of.say(format!(
                "cannot publish to {}: {why}; it is tried again, and packets stay on the disk",
                self.broker()
            ));
            self.told = Some(why);
        }
    }

    /// Returns whether the collector is ending, and there is nothing left to publish, or no time.
    fn is_finished(&mut self) -> bool {
        if self.of.status.until.get().is_none() {
            return false;
        }
        self.idle.retain(|_, spool| spool.has_more());
        self.idle.is_empty() || self.of.status.is_over()
    }

    /// Adds the trace in a directory.
    fn admit(&mut self, root: PathBuf) {
        if self.active.contains(&root) || self.idle.contains_key(&root) || self.failed.contains(&root) {
            return;
        }
        match Spool::open(&root) {
            Ok(Some(spool)) => drop(self.idle.insert(root, spool)),
            Ok(None) => {}
            Err(error) => self.fail(root, &error.to_string()),
        }
    }

    fn fail(&mut self, root: PathBuf, why: &str) {
        self.of.say(format!(
            "cannot publish {}: {why}; the next collector with this directory tries it again",
            root.display()
        ));
        self.failed.insert(root);
    }

    fn admit_open(&mut self) {
        let open = self.of.shared.hub.borrow().published_sessions();
        for (_, root) in open {
            self.admit(root);
        }
    }

    /// Waits, and adds new traces.
    async fn pass(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && !self.is_finished() {
            sleep(PAUSE).await;
        }
        self.admit_open();
        let mut unreadable = Vec::new();
        for (root, spool) in &mut self.idle {
            match spool.refresh() {
                Ok(()) => self.of.count(spool),
                Err(error) => unreadable.push((root.clone(), error)),
            }
        }
        for (root, error) in unreadable {
            self.idle.remove(&root);
            self.fail(root, &error.to_string());
        }
    }

    async fn connect(&mut self) -> Result<Link, LinkError> {
        let broker = self.broker().clone();
        let link = Link::open(&broker, &self.of.status).await?;
        if !std::mem::replace(&mut self.has_connected, true) {
            self.of.say(format!("publishing to {broker} (server {})", link.stream.server));
        }
        Ok(link)
    }

    /// Publishes over a connection until it is lost or the collector ends. Returns the error that made the connection unusable.
    async fn serve(&mut self, link: &Rc<Link>) -> Option<String> {
        let mut tasks = JoinSet::new();
        let mut trouble = None;
        let before = self.of.shared.hub.borrow().counts.published;
        self.of.status.is_connected.set(true);
        loop {
            self.admit_open();
            if trouble.is_none() {
                for (root, spool) in std::mem::take(&mut self.idle) {
                    self.active.insert(root);
                    tasks.spawn_local(session::run(Rc::clone(&self.of), Rc::clone(link), spool));
                }
            }
            while let Some(joined) = tasks.try_join_next() {
                if let Ok((spool, end)) = joined {
                    trouble = self.ended(spool, end, link).or(trouble);
                }
            }
            if self.told.is_some() && self.of.shared.hub.borrow().counts.published > before {
                self.told = None;
                self.of.say(format!("publishing to {} goes on", self.broker()));
            }
            if let Err(why) = link.check() {
                trouble.get_or_insert_with(|| why.to_string());
            }
            let is_ending = self.of.status.until.get().is_some();
            if tasks.is_empty() && (trouble.is_some() || is_ending && self.idle.is_empty()) {
                break;
            }
            sleep(PAUSE).await;
        }
        self.of.status.is_connected.set(false);
        trouble
    }

    /// Handles the end of a trace's task. Returns the error if the connection is unusable.
    fn ended(&mut self, mut spool: Spool, end: End, link: &Link) -> Option<String> {
        let root = spool.root.clone();
        self.active.remove(&root);
        let counted = |packets: &u64| *packets > 0;
        match end {
            End::Done => {
                self.of.status.unpublished.borrow_mut().remove(&root);
                self.of.shared.hub.borrow_mut().counts.unpublished = self.of.status.unpublished();
            }
            End::Settled => {
                self.of.count(&mut spool);
                self.of.status.unpublished.borrow_mut().retain(|of, packets| *of != root || counted(packets));
            }
            End::Failed(why) => self.fail(root, &why),
            End::Lost(why) => {
                // Other traces switch to the next connection as well.
                link.give_up();
                self.idle.insert(root, spool);
                return Some(why.to_string());
            }
        }
        None
    }
}

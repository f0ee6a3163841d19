//! Compares an account with the metadata and with the counts of the stream files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::scan::{Counter, Scan};
use super::{Check, ReadOptions, Report};
use crate::account::{Account, ChannelAccount, StreamAccount, uuid_text};
use crate::metadata::{EnvValue, Metadata};
use crate::parallel;
use crate::stream::StreamReader;

/// Adds 64-bit counters without overflow.
fn sum(counters: impl IntoIterator<Item = u64>) -> u128 {
    counters.into_iter().map(u128::from).sum()
}

/// The part of a counter that belongs to the chunk.
fn own(counter: u64, before: u64) -> i128 {
    i128::from(counter) - i128::from(before)
}

/// The packets of one stream.
pub(super) struct StreamFile {
    /// The name of its file.
    pub(super) name: String,
    /// Its name in the report.
    pub(super) path: PathBuf,
    pub(super) reader: StreamReader,
}

pub(super) struct Balance<'a, 'r> {
    directory: &'a Path,
    metadata: &'a Metadata,
    account: &'a Account,
    report: &'a mut Report,
    reading: &'a mut ReadOptions<'r>,
    found: FileCounts,
}

/// Counts from the stream files.
#[derive(Debug, Default)]
pub(super) struct FileCounts {
    /// Number of events decoded in all files, by class and id.
    pub(super) decoded: BTreeMap<(u64, u64), u64>,
    /// The numbers of the first and the last packet, by class and instance.
    pub(super) sequences: BTreeMap<(u64, Option<u64>), (u64, u64)>,
}

impl<'a, 'r> Balance<'a, 'r> {
    pub(super) fn new(
        directory: &'a Path,
        metadata: &'a Metadata,
        account: &'a Account,
        (report, reading): (&'a mut Report, &'a mut ReadOptions<'r>),
    ) -> Self {
        Self { directory, metadata, account, report, reading, found: FileCounts::default() }
    }

    fn equal<L, R>(&mut self, rule: char, subject: &str, compares: &'static str, left: &L, right: &R)
    where
        L: PartialEq<R> + ToString,
        R: ToString,
    {
        let check = Check::new(rule, subject, compares, (left.to_string(), right.to_string()), left == right);
        self.report.checks.push(check);
    }

    /// Compares a counter of a packet with the account's, which may have increased since if `may_be_less`. If no packet has it, it is 0.
    fn counter(
        &mut self,
        (rule, subject, compares): (char, &str, &'static str),
        (left, right): (Option<u64>, u64),
        may_be_less: bool,
    ) {
        let count = left.unwrap_or(0);
        let left = left.map_or("not in any packet".to_owned(), |n| n.to_string());
        let pass = count == right || may_be_less && count < right;
        self.report.checks.push(Check::new(rule, subject, compares, (left, right), pass));
    }

    /// Applies all rules except A and R.
    pub(super) fn run(mut self, files: &[StreamFile]) -> FileCounts {
        let subject = self.directory.display().to_string();
        let uuid = self.metadata.uuid().map_or("none".to_owned(), uuid_text);
        self.equal('B', &subject, "the account's UUID = the metadata's", &self.account.trace_uuid, &uuid);
        if let Some(EnvValue::Integer(pid)) = self.metadata.env_value("vpid") {
            let left = i128::from(self.account.pid);
            self.equal('C', &subject, "the account's pid = the metadata's vpid", &left, pid);
        }
        self.declarations(&subject);
        let mut named: BTreeMap<&str, (&ChannelAccount, &StreamAccount)> = BTreeMap::new();
        let account = self.account;
        for channel in &account.channels {
            let instances: BTreeSet<u64> = channel.streams.iter().map(|s| s.instance).collect();
            let compares = "streams in the account = different instances";
            self.equal('Q', &channel.name, compares, &channel.streams.len(), &instances.len());
            for stream in &channel.streams {
                let stream_subject = format!("{}, instance {}", channel.name, stream.instance);
                self.stream_account(&stream_subject, stream);
                if stream.file.is_empty() {
                    self.nothing_written(&stream_subject, stream);
                } else if named.insert(&stream.file, (channel, stream)).is_some() {
                    self.equal('Q', &stream_subject, "the account names the file = once", &"twice", &"once");
                }
            }
        }
        let scans = self.scan(files, |file| named.get(file.name.as_str()).map_or(0, |(_, s)| s.before.recorded));
        for (file, scan) in files.iter().zip(scans) {
            let entry = named.remove(file.name.as_str());
            self.file(file, &scan, entry);
        }
        for (name, (channel, _)) in named {
            let subject = format!("{}, {name}", channel.name);
            self.equal('Q', &subject, "the stream file = present", &"missing", &"present");
        }
        // Only the last chunk has the counters of events, which are not known at the end of the others.
        if account.chunk.as_ref().is_none_or(|chunk| chunk.last) {
            for channel in &account.channels {
                self.channel(channel);
            }
        }
        self.found
    }

    /// Rule D.
    fn declarations(&mut self, subject: &str) {
        let declared: BTreeSet<_> = self
            .metadata
            .streams()
            .flat_map(|class| class.events.values().map(|e| (class.id, e.id, e.name.clone())))
            .collect();
        let mut counted = BTreeSet::new();
        let mut entries = 0usize;
        for channel in &self.account.channels {
            let known = if self.metadata.stream(channel.id).is_some() { "declared" } else { "unknown" };
            let subject = format!("{}, id {}", channel.name, channel.id);
            self.equal('D', &subject, "the metadata's stream = declared", &known, &"declared");
            entries += channel.events.len();
            counted.extend(channel.events.iter().map(|e| (channel.id, e.id, e.name.clone())));
        }
        self.equal('D', subject, "events in the account = different ones", &entries, &counted.len());
        let first = |set: Option<&(u64, u64, String)>| match set {
            Some((stream, id, name)) => format!("{name}, id {id} of stream {stream}"),
            None => "none".to_owned(),
        };
        let unknown = first(counted.difference(&declared).next());
        self.equal('D', subject, "the account's events that the metadata lacks = none", &unknown, &"none");
        let uncounted = first(declared.difference(&counted).next());
        self.equal('D', subject, "the metadata's events that the account lacks = none", &uncounted, &"none");
    }

    /// Rule H.
    fn stream_account(&mut self, subject: &str, stream: &StreamAccount) {
        let right = sum([stream.written, stream.overwritten, stream.sink]);
        let compares = "recorded = written + overwritten + sink";
        self.equal('H', subject, compares, &u128::from(stream.recorded), &right);
    }

    /// Rules I and J for a stream without a file.
    fn nothing_written(&mut self, subject: &str, stream: &StreamAccount) {
        self.equal('I', subject, "events decoded (no file) = written", &0, &own(stream.written, stream.before.written));
        self.equal('J', subject, "packets read (no file) = packets", &0, &own(stream.packets, stream.before.packets));
    }

    /// Reads files; `before` returns the number of records before each.
    fn scan(&mut self, files: &[StreamFile], before: impl Fn(&StreamFile) -> u64) -> Vec<Scan> {
        let uuid = self.metadata.uuid();
        let streams: Vec<_> = files.iter().map(|file| (file.reader.clone(), Scan::new(uuid, before(file)))).collect();
        let counters = |threads| (0..threads).map(|_| Counter::default()).collect::<Vec<_>>();
        parallel::read(&streams, self.reading.parallelism, counters, self.reading.progress).1
    }

    /// Checks files that are not covered by an account: rules B, N, P and Q.
    pub(super) fn packets_alone(mut self, files: &[StreamFile]) {
        let scans = self.scan(files, |_| 0);
        files.iter().zip(scans).for_each(|(file, scan)| drop(self.intact(file, &scan)));
    }

    /// Checks one file without the account: rules B, N, P and Q. Returns its name.
    fn intact(&mut self, file: &StreamFile, scan: &Scan) -> String {
        let subject = file.path.display().to_string();
        self.equal('B', &subject, "packets with another UUID = none", &scan.foreign.describe(), &"none");
        self.equal('Q', &subject, "damage = none", &scan.damage.describe(), &"none");
        self.report.unchecked += scan.unchecked;
        self.equal('N', &subject, "packets whose number does not rise = none", &scan.numbers.describe(), &"none");
        self.equal(
            'P',
            &subject,
            "packets that contradict themselves = none",
            &scan.contradictions.describe(),
            &"none",
        );
        subject
    }

    /// Checks one file: rules B and I to Q.
    fn file(&mut self, file: &StreamFile, scan: &Scan, entry: Option<(&ChannelAccount, &StreamAccount)>) {
        let subject = self.intact(file, scan);
        if let Some((class, instance)) = scan.stream {
            for (id, count) in &scan.decoded {
                *self.found.decoded.entry((class, *id)).or_default() += count;
            }
            self.found.sequences.extend(scan.sequence.map(|numbers| ((class, instance), numbers)));
        }
        let Some((channel, stream)) = entry else {
            if scan.packets > 0 {
                self.equal('Q', &subject, "the account's entry = present", &"missing", &"present");
            }
            return;
        };
        if let Some((class, instance)) = scan.stream {
            let name = |class: u64, instance: Option<u64>| match instance {
                Some(instance) => format!("stream {class}, instance {instance}"),
                None => format!("stream {class}"),
            };
            let right = name(channel.id, Some(stream.instance));
            self.equal('Q', &subject, "the packets' stream = the account's", &name(class, instance), &right);
        }
        let before = &stream.before;
        let (written, packets) = (own(stream.written, before.written), own(stream.packets, before.packets));
        self.equal('I', &subject, "events decoded = written", &i128::from(scan.events), &written);
        self.equal('J', &subject, "packets read = packets", &i128::from(scan.packets), &packets);
        // The packets lost on the way to a peer may be the last ones.
        let may_end_early = stream.sink_packets > 0;
        let [discarded, total] = if may_end_early {
            [
                "the last packet's events_discarded, at most discarded",
                "the last packet's events_before + its events, at most recorded",
            ]
        } else {
            [
                "the last packet's events_discarded = discarded",
                "the last packet's events_before + its events = recorded",
            ]
        };
        self.counter(('K', &subject, discarded), (scan.discarded, stream.discarded), may_end_early);
        self.counter(('L', &subject, total), (scan.total, stream.recorded), may_end_early);
        let right = i128::from(stream.overwritten) + i128::from(stream.sink) - own(before.recorded, before.written);
        let behind = if may_end_early { own(stream.recorded, scan.total.unwrap_or(before.recorded)) } else { 0 };
        let compares = if behind > 0 {
            "jumps of events_before, and events behind the last packet = overwritten + sink"
        } else {
            "jumps of events_before = overwritten + sink"
        };
        self.equal('M', &subject, compares, &(i128::from(scan.jumps) + behind), &right);
    }

    /// True if there are, or were, chunks before this one, so that only some of the recorded events are decoded here.
    fn goes_on(&self) -> bool {
        self.account.chunk.as_ref().is_some_and(|chunk| chunk.number > 1)
    }

    /// Rules E, F, G and O.
    fn channel(&mut self, channel: &ChannelAccount) {
        let after_ring = sum(channel.streams.iter().flat_map(|s| [s.overwritten, s.sink]));
        let mut missing = 0i128;
        for event in &channel.events {
            let subject = format!("{} in {}", event.name, channel.name);
            let spent = sum([event.recorded, event.filtered, event.suppressed]) + sum(event.lost.values().copied());
            let compares = "fired = recorded + filtered + suppressed + lost";
            self.equal('E', &subject, compares, &u128::from(event.fired), &spent);
            let decoded = self.found.decoded.get(&(channel.id, event.id)).copied().unwrap_or(0);
            missing += i128::from(event.recorded) - i128::from(decoded);
            let (compares, pass) = if after_ring == 0 && !self.goes_on() {
                ("events decoded = recorded", decoded == event.recorded)
            } else {
                ("events decoded, at most recorded", decoded <= event.recorded)
            };
            self.report.checks.push(Check::new('O', subject, compares, (decoded, event.recorded), pass));
        }
        let name = &channel.name;
        if !self.goes_on() {
            let compares = "recorded and not decoded = overwritten + sink";
            self.equal('O', name, compares, &missing.to_string(), &after_ring.to_string());
        }
        let events = sum(channel.events.iter().map(|e| e.recorded));
        let streams = sum(channel.streams.iter().map(|s| s.recorded));
        self.equal('F', name, "the events' recorded = the streams' recorded", &events, &streams);
        let lost = sum(channel.events.iter().flat_map(|e| e.lost.values().copied()));
        let discarded = sum(channel.streams.iter().map(|s| s.discarded));
        self.equal('G', name, "the events' lost = the streams' discarded", &lost, &discarded);
    }
}

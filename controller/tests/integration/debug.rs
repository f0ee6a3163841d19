//! `Debug` of every type of the facade terminates, and is short: no type refers to itself through tracepoints and markers. `tests/house`
//! checks that no type of the facade is missing here.

use crate::common::{Outcome, memory_place};
use std::any::type_name;
use std::fmt::{self, Debug, Write};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracepoint::clock::{Clock, ClockInUse, select};
use tracepoint::control::{
    Ack, AckState, Acknowledgements, AppStatus, Application, ApplicationInfo, ArgumentInfo, BandwidthUse, ControlError,
    Controller, DestroyResult, FieldInfo, Leftover, Mismatch, MissingFeature, NamedSession, ProcessKey,
    ProcessKeyError, ProcessStatistics, RecordedProcess, Recorder, Rotation, RotationResult, RuleAck, SessionInCode,
    SessionStatistics, SilenceReason, StreamStatus, TracepointInfo, TracepointKind, TriggerAck, UnmatchedRule,
};
use tracepoint::field::{Base, ByteOrder, Elements, EnumLabel, FieldDescriptor, FieldType, IntegerType, Value};
use tracepoint::marker::{Decision, FieldRange, FieldView, MarkerDescriptor, Subscriber};
use tracepoint::probe::{Dynamic, RegisterError, SiteSwitchError};
use tracepoint::runtime::{Argument, Location, ParseLevelError, Platform, TracepointNotFound};
use tracepoint::session::{
    AgentBuilder, AgentError, BudgetSpec, ChannelSpec, ConfigError, Counters, CpuPercent, CpuPercentError, CtfSinkSpec,
    DirError, DrainCounters, DrainedBy, DropPolicy, DtSinkSpec, Dump, ExistingTraces, LevelError, LevelRule, Limit,
    LimitError, Limits, NameError, NameRule, NameRuleError, Notice, ObjectSinkSpec, OverBudget, ProgramPattern,
    ReadError, RecoverError, Rights, RingDirError, RuleError, RuleProblem, RuleStatistic, RuleStatisticError, RunDir,
    RunDirError, SessionBuilder, SessionError, SessionSpec, SinkFailure, SinkSource, SinkSpec, SnapshotSummary,
    SpecError, State, StateDump, StateDumpStatus, StatisticResult, Status, StreamSinkSpec, StreamSpec, Summary,
    TextSinkSpec, TooManyEvents, UdpSinkSpec,
};
use tracepoint::sinks::{
    ChannelDescription, ClockInfo, CtfError, CtfSink, DtError, DtSink, EventDescription, NewEvents, Packet,
    ProcessInfo, Sink, SinkError, SinkId, SinkReport, StreamId, StreamInfo, StreamSink, Style, TextOptions, TextSink,
    TimeFormat, TraceInfo, TraceStart, UdpSink, stream, udp,
};
use tracepoint::trigger::{
    ActionResult, CoreDump, Decoder, Detail, FireOutcome, FireRequest, FiredTrigger, KeptSnapshot, Listener, Message,
    Notification, Occurrence, PayloadTooLong, Report, ReportKind, Subscription, Threshold, ThresholdError,
    TriggerAction, TriggerCondition, TriggerError, TriggerOptions, TriggerPartError, TriggerSpec, TriggerState,
    TriggerStatus,
};
use tracepoint::{Agent, Channel, Level, Marker, Probe, Rule, Session, Tracepoint, filter, testing};

tracepoint::define_trace! {
    provider = "debug";
    pub seen(n: u64) { n: u64 = n }
    pub counted(n: u64);
}

/// Maximum number of bytes of each: a few lines for each tracepoint of this program.
const MAX: usize = 256 << 10;

/// Accepts [`MAX`] bytes, and refuses more, so that a cycle of types ends the formatting and does not overflow the stack.
struct Bounded(usize);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

fn shows<T: Debug + ?Sized>(value: &T) {
    for result in [write!(Bounded(MAX), "{value:?}"), write!(Bounded(MAX), "{value:#?}")] {
        result.unwrap_or_else(|_| panic!("Debug of {} takes more than {MAX} bytes", type_name::<T>()));
    }
}

/// Formats one value of each type.
macro_rules! shown {
    ($($ty:ty: $value:expr;)*) => { $(shows::<$ty>(&$value);)* };
}

fn io_error() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn dir_error() -> DirError {
    DirError::Owner { path: PathBuf::from("/"), owner: 0, user: 1 }
}

#[derive(Debug)]
struct Numbers([u64; 3]);

impl Elements for Numbers {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index).copied().map(Value::Unsigned)
    }
}

#[test]
fn tracepoints_and_probes() -> Outcome {
    own_process!();
    let tracepoint = tracepoint::find("debug:seen")?;
    let probe = register_trace_counted(|_| ())?;
    let session = testing::TestSession::start("debug:*");
    tracepoint::trace!(seen(1));
    shown! {
        Tracepoint: *tracepoint;
        Marker: *tracepoint.marker().ok_or("a marker")?;
        Location: tracepoint.location();
        [Argument]: *tracepoint.arguments();
        Probe<_>: probe;
        Probe<Dynamic>: tracepoint.register::<fn(u64)>(|_| ())?;
        Platform: tracepoint::runtime::platform();
        Level: Level::Info;
        TracepointNotFound: tracepoint::find("debug:saen").unwrap_err();
        RegisterError: tracepoint.register::<fn(u8)>(|_| ()).unwrap_err();
        Option<SiteSwitchError>: None;
        ParseLevelError: "no".parse::<Level>().unwrap_err();
        Clock: Clock::User(|| 1);
        Result<(), ClockInUse>: select(Clock::Monotonic);
        FieldDescriptor: tracepoint.marker().ok_or("a marker")?.fields()[0];
        [FieldType; 2]: [
            FieldType::Sequence { element: &FieldType::Bool },
            FieldType::Enum {
                container: IntegerType { bits: 8, signed: false, base: Base::Decimal, order: ByteOrder::Little },
                labels: &[EnumLabel { name: "Idle", value: 0 }],
            },
        ];
        Option<(Decision, FieldRange, FieldView<'_>, MarkerDescriptor, Subscriber)>: None;
        Value<'_>: Value::Elements(&Numbers([1, 2, 3]));
        testing::TestSession: session;
        testing::Event: session.events()[0];
        testing::Value: session.events()[0]["n"];
        testing::Expectation<'_>: session.expect("debug:seen");
        testing::Member: session.member();
        testing::ThreadGuard: session.member().enter();
        filter::Expression: filter::Expression::parse("n > 1")?;
        filter::Program: filter::Expression::parse("n > 1")?.compile(tracepoint.marker().ok_or("a marker")?.fields())?;
        filter::FilterError: filter::Expression::parse("n >").unwrap_err();
    }
    Ok(())
}

#[test]
fn sessions_in_code() -> Outcome {
    own_process!();
    let place = memory_place();
    let dump_seen = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&dump_seen);
    let dump: StateDump = tracepoint::session::state_dump("all", move |dump: &Dump| {
        shows(dump);
        *seen.lock().expect("not poisoned") = format!("{dump:?}");
    });
    let builder = || -> SessionBuilder { Session::builder("debug").dir(place.path()).events("debug:*") };
    let spec: SessionSpec = builder().channel(Channel::overwrite(1 << 20)).spec();
    let session: Session = builder().sink(CtfSink::create(place.path().join("trace"))?).start()?;
    let refused = Session::builder("debug").dir(place.path()).events("debag:*").start();
    let sink: SinkSource = TextSink::new(io::sink()).into();
    shown! {
        SessionBuilder: builder();
        SessionSpec: spec;
        ChannelSpec: spec.channel;
        Limits: spec.limits;
        DrainedBy: spec.drain;
        CtfSinkSpec: SinkSpec::ctf("/x");
        DtSinkSpec: SinkSpec::dt("/x");
        TextSinkSpec: SinkSpec::standard_error();
        UdpSinkSpec: SinkSpec::udp(([127, 0, 0, 1], 0).into());
        StreamSinkSpec: SinkSpec::stream(StreamSpec::to("host"));
        [Option<ExistingTraces>]: [SinkSpec::ctf("/x").dated().existing];
        DropPolicy: DropPolicy::default();
        Threshold: "count of count > 2".parse::<Threshold>()?;
        State: spec.state;
        Channel: Channel::discard(1 << 20);
        Session: session;
        Status: session.status();
        DrainCounters: session.status().drain;
        Result<(), ConfigError>: Channel::discard(1).check();
        [Notice]: *session.notices();
        [StateDumpStatus]: *session.state_dumps();
        [(SinkId, SinkSpec)]: *session.sinks();
        SessionError: refused.unwrap_err();
        Result<Session, SessionError>: builder().start();
        SinkSource: sink;
        SnapshotSummary: session.snapshot(place.path().join("snapshot"))?;
    }
    let id: SinkId = session.add_sink(sink)?;
    shown! { SinkReport: session.remove_sink(id)?; }
    let summary: Summary = session.stop()?;
    shown! { Summary: summary; StateDump: dump; [tracepoint::sinks::account::Account]: [summary.accounts[0].1.clone()]; }
    assert!(!dump_seen.lock().expect("not poisoned").is_empty(), "the state dump has run");
    Ok(())
}

#[test]
fn sessions_from_outside() -> Outcome {
    own_process!();
    let place = memory_place();
    let agent = Agent::start_in(&RunDir::at(place.path())?)?;
    let controller = Controller::at(RunDir::at(place.path())?)?;
    let mut spec = SessionSpec::new();
    spec.add_rule(&Rule::new("debug:*").filter("n > 1").limit("5/s"))?;
    spec.sinks = vec![SinkSpec::ctf(place.path().join("traces")).into()];
    let named: NamedSession<'_> = controller.create("named", &spec)?;
    let acknowledged = named.wait(1, Duration::from_secs(30))?;
    let application = controller.process(std::process::id())?;
    let recorder = Recorder::start(&named, Vec::new(), 1 << 20, Rights::default())?;
    shown! {
        Agent: agent;
        AgentBuilder: Agent::builder();
        AgentError: Agent::start_in(&RunDir::at(place.path())?).unwrap_err();
        Controller: controller;
        NamedSession<'_>: named;
        Acknowledgements: acknowledged;
        Application: application;
        ApplicationInfo: application.info();
        AppStatus: application.status()?;
        [TracepointInfo]: *application.tracepoints()?;
        RunDir: RunDir::at(place.path())?;
        [UnmatchedRule]: *controller.unmatched(&spec)?;
        Result<Rotation, ControlError>: named.rotate();
        SilenceReason: application.silence();
        Vec<MissingFeature>: controller.unbuilt(&spec)?;
        Vec<Leftover>: controller.leftovers()?;
        BandwidthUse: controller.bandwidth()?;
        Vec<SessionInCode>: controller.sessions_in_code();
        Recorder: recorder;
        Vec<RecordedProcess>: recorder.finish(&[]);
        Rights: Rights::default();
        DestroyResult: named.destroy(Duration::from_secs(30), true)?;
    }
    Ok(())
}

#[test]
fn sinks_and_what_they_get() -> Outcome {
    own_process!();
    let place = memory_place();
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let udp = UdpSink::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = stream::StreamOptions::to(stream::Destination::new("127.0.0.1", silent.local_addr()?.port()));
    let remote = StreamSink::new(options.clone())?;
    let trace = TraceInfo {
        uuid: [1; 16],
        name: "debug".to_owned(),
        clock: ClockInfo::default(),
        process: ProcessInfo::default(),
    };
    let event = EventDescription {
        class: 0,
        id: 1,
        name: "debug:seen".to_owned(),
        level: Level::Info,
        fields: tracepoint::find("debug:seen")?.marker().ok_or("a marker")?.fields(),
        doc: "",
        format: "n %lu",
    };
    let stream = StreamId { class: 0, instance: 7 };

    /// A sink that formats its arguments.
    struct Looks(Arc<Mutex<u32>>);
    impl Sink for Looks {
        fn name(&self) -> String {
            "looks".to_owned()
        }
        fn begin(&mut self, start: &TraceStart<'_>) -> Result<(), SinkError> {
            shown! { TraceStart<'_>: *start; [ChannelDescription]: *start.channels; }
            *self.0.lock().expect("not poisoned") += 1;
            Ok(())
        }
        fn describe(&mut self, new: &NewEvents<'_>) -> Result<(), SinkError> {
            shown! { NewEvents<'_>: *new; [EventDescription]: *new.events; }
            *self.0.lock().expect("not poisoned") += 1;
            Ok(())
        }
        fn packet(&mut self, stream: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
            shown! { StreamInfo: *stream; Packet<'_>: *packet; }
            *self.0.lock().expect("not poisoned") += 1;
            Ok(())
        }
    }
    let looked = Arc::new(Mutex::new(0));
    let session =
        Session::builder("looks").in_memory().events("debug:seen").sink(Looks(Arc::clone(&looked))).start()?;
    tracepoint::trace!(seen(1));
    session.stop()?;
    assert!(*looked.lock().expect("not poisoned") >= 3, "begin, describe and a packet");
    shown! {
        CtfSink: CtfSink::create(place.path().join("ctf"))?;
        DtSink: DtSink::create(place.path().join("ring.dt"), 4)?;
        TextSink<io::Sink>: TextSink::new(io::sink());
        TextOptions: TextOptions::default();
        (Style, TimeFormat): (Style::default(), TimeFormat::default());
        UdpSink: udp;
        udp::UdpWatch: udp.watch();
        udp::UdpStats: udp.watch().stats();
        StreamSink: remote;
        stream::StreamWatch: remote.watch();
        stream::StreamOptions: options;
        TraceInfo: trace;
        EventDescription: event;
        StreamInfo: StreamInfo { id: stream, channel: "channel".to_owned() };
        CtfError: CtfError::NotADirectory(PathBuf::from("/"));
        DtError: DtSink::create("/nowhere/a.dt", 4).unwrap_err();
        SinkError: SinkError::new("write", io_error());
    }
    Ok(())
}

#[test]
fn descriptions_and_errors() -> Outcome {
    let ack: Ack = serde_json::from_str(
        r#"{ "process": "7-9", "name": "a", "id": "x", "generation": 1, "state": "recording", "events": 1,
             "rules": [{ "events": 1 }, { "unsupported": "no" }], "triggers": { "t": "watched" }, "outputs": ["/a"],
             "counters": {}, "over_budget": [{ "event": "a:b", "reason": "cost" }],
             "rotated": { "number": 1, "chunks": ["/a/1"] } }"#,
    )?;
    shown! {
        Ack: ack;
        AckState: AckState::Recording;
        Vec<Option<RuleAck>>: ack.rules;
        Vec<&TriggerAck>: ack.triggers.values().collect::<Vec<_>>();
        Vec<OverBudget>: ack.over_budget;
        Option<RotationResult>: ack.rotated;
        Vec<StreamStatus>: ack.streams;
        Counters: Counters::default();
        ProcessKey: ack.process;
        ProcessKeyError: "7".parse::<ProcessKey>().unwrap_err();
        BudgetSpec: BudgetSpec::default();
        CpuPercent: "1%".parse::<CpuPercent>()?;
        CpuPercentError: "one".parse::<CpuPercent>().unwrap_err();
        Limit: "5/s".parse::<Limit>()?;
        LimitError: "5/".parse::<Limit>().unwrap_err();
        TracepointInfo: TracepointInfo::default();
        TracepointKind: TracepointKind::Hook;
        ArgumentInfo: ArgumentInfo::default();
        FieldInfo: FieldInfo::default();
        Notice: Notice::NoRule;
        TriggerCondition: TriggerCondition::Event(Rule::new("a:*"));
        TriggerAction: TriggerAction::Snapshot(PathBuf::from("/a"));
        TriggerSpec: TriggerSpec::new(TriggerCondition::Exit, TriggerAction::Notify);
        StreamSpec: StreamSpec::to("host");
        SpecError: SpecError::Invalid("no".to_owned());
        RuleProblem: RuleProblem::LimitWithoutClock;
        RuleStatistic: "sample(1/10)".parse::<RuleStatistic>()?;
        Result<RuleStatistic, RuleStatisticError>: "no".parse::<RuleStatistic>();
        NameRule: Rule::new("a:*").event;
        Result<LevelRule, LevelError>: "no".parse::<LevelRule>();
        ProgramPattern: "/usr/bin/*".parse::<ProgramPattern>()?;
        Result<Threshold, ThresholdError>: "no".parse::<Threshold>();
        Result<TriggerCondition, TriggerPartError>: "no".parse::<TriggerCondition>();
        ReadError: ReadError::Io { path: PathBuf::from("/"), source: io_error() };
        SessionStatistics: SessionStatistics::default();
        [ProcessStatistics]: *SessionStatistics::default().processes;
        [StatisticResult]: *SessionStatistics::default().merged();
        DirError: dir_error();
        RunDirError: RunDirError::from(dir_error());
        RingDirError: RingDirError::Dir(dir_error());
        ControlError: ControlError::Dir(dir_error());
        RecoverError: RecoverError::Write { path: PathBuf::from("/"), source: io_error() };
        TriggerError: TriggerError::from(ControlError::Dir(dir_error()));
        TriggerOptions: TriggerOptions::default();
        TriggerState: TriggerState::default();
        ActionResult: ActionResult::default();
        CoreDump: CoreDump::new(1, 2, 3, "server", "host");
        Decoder: Decoder::default();
        Occurrence: Occurrence::new(&TriggerCondition::Exit, 1, std::time::UNIX_EPOCH);
        Option<(Detail, FireOutcome, FireRequest, FiredTrigger, KeptSnapshot, Listener)>: None;
        Option<(Message, Notification, PayloadTooLong, ReportKind, Report, Subscription, TriggerStatus)>: None;
        Mismatch: Mismatch::Name;
        Option<(NameRuleError, ObjectSinkSpec, TooManyEvents)>: None;
        Option<SinkFailure>: None;
        Option<RuleError>: None;
        Option<NameError>: None;
    }
    Ok(())
}

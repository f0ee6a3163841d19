//! Kernel events, from the bytes of ring buffers: handmade and random ones.

use std::path::Path;
use tempfile::TempDir;
use tracepoint_reader::kernel::EventFormat;
use tracepoint_reader::{Item, Trace, Value, verify};
use tracepoint_sinks::{ClockInfo, CtfSink, Drain, KernelCounts, KernelRings, ProcessInfo, SinkReport, TraceInfo};

/// A format with a field of each type.
const FORMAT: &str = "name: all\nID: 300\nformat:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:int ret;\toffset:24;\tsize:4;\tsigned:1;
\tfield:void * pointer;\toffset:32;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] path;\toffset:40;\tsize:4;\tsigned:0;
\tfield:__data_loc u16[] numbers;\toffset:44;\tsize:4;\tsigned:0;
\tfield:__rel_loc char[] text;\toffset:48;\tsize:4;\tsigned:0;
\tfield:unsigned int pair[2];\toffset:52;\tsize:8;\tsigned:0;
\tfield:struct in6_addr address;\toffset:60;\tsize:16;\tsigned:0;
\tfield:char x;\toffset:76;\tsize:1;\tsigned:1;

print fmt: \"\"\n";

fn drain(place: &Path) -> Drain<KernelRings> {
    drain_of(place, "test:all", EventFormat::parse(FORMAT).expect("a format"))
}

fn drain_of(place: &Path, name: &str, format: EventFormat) -> Drain<KernelRings> {
    let clock = ClockInfo { uuid: Some([7; 16]), offset: 1_700_000_000_000_000_000 };
    let process = ProcessInfo { hostname: "host".to_owned(), kernel: "6.1.0".to_owned(), ..ProcessInfo::default() };
    let trace = TraceInfo { uuid: [9; 16], name: "kernel".to_owned(), clock, process };
    let mut drain = Drain::kernel(trace, 1000, vec![(name.to_owned(), format)]);
    drain.add_sink(Box::new(CtfSink::create(place).expect("a directory"))).expect("it begins");
    drain
}

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend((body.len() as u16 + 8).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn sample(time: u64, raw: &[u8]) -> Vec<u8> {
    let mut body = [41_u32.to_le_bytes(), 42_u32.to_le_bytes()].concat();
    body.extend(time.to_le_bytes());
    body.extend([0; 8]);
    body.extend([1, 0].map(u64::to_le_bytes).as_flattened());
    body.extend((raw.len() as u32).to_le_bytes());
    body.extend(raw);
    record(9, &body)
}

fn raw() -> Vec<u8> {
    let mut raw = vec![0; 80];
    raw[..2].copy_from_slice(&300_u16.to_le_bytes());
    raw[8..14].copy_from_slice(b"shop\0x");
    raw[24..28].copy_from_slice(&(-2_i32).to_le_bytes());
    raw[32..40].copy_from_slice(&0xffff_8880_0000_1000_u64.to_le_bytes());
    raw[40..44].copy_from_slice(&(5_u32 << 16 | 0x50).to_le_bytes());
    raw[44..48].copy_from_slice(&(4_u32 << 16 | 0x56).to_le_bytes());
    raw[48..52].copy_from_slice(&(3_u32 << 16 | (90 - 52)).to_le_bytes());
    raw[52..60].copy_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0]);
    raw[76] = 0xff;
    raw.extend(b"/bin\0\0\x01\x02\x03\x04abc");
    raw
}

fn passes(place: &Path, reports: &[SinkReport]) {
    assert!(reports[0].error.is_none(), "{:?}", reports[0].error);
    let report = verify(place).expect("a trace");
    let failures: Vec<_> = report.failures().collect();
    assert!(report.passed() && report.unchecked == 0, "{failures:#?}");
}

#[test]
fn fields_are_those_of_the_format_and_times_are_in_order() {
    let place = TempDir::new().expect("a directory");
    let dir = place.path().join("trace");
    let mut drain = drain(&dir);
    let unknown = sample(2500, &[1, 1, 0, 0]);
    drain.add(3, &[sample(3000, &raw()), unknown, sample(2000, &raw())].concat()).expect("records");
    drain.drain();
    // Later in the buffer, and earlier in time.
    let lost = record(2, &[1_u64.to_le_bytes(), 5_u64.to_le_bytes()].concat());
    drain.add(3, &[lost, sample(2900, &raw())].concat()).expect("records");
    // According to the kernel, one event was neither stored nor lost.
    let counts = |fired, lost| vec![KernelCounts { fired, lost }];
    let reports = drain.end(&[(3, counts(9, 5)), (4, counts(2, 2))]);
    passes(&dir, &reports);
    let account = &reports[0].account;
    assert_eq!(account.notes.clamped, 1);
    let event = &account.channels[0].events[0];
    assert_eq!((event.fired, event.recorded, event.lost["ring_full"], event.lost["not_stored"]), (11, 3, 7, 1));

    let trace = Trace::open(&dir).expect("a trace");
    let (mut times, mut losses) = (Vec::new(), 0);
    for item in trace.items() {
        match item {
            Item::Event(event) => {
                times.push(event.time_ns - 1_700_000_000_000_000_000);
                let origin = event.origin();
                assert_eq!((origin.pid, origin.tid, origin.program), (Some(41), Some(42), None));
                let cpu = event.packet_context.as_ref().and_then(|context| context.get("cpu_id")?.as_u64());
                assert_eq!(cpu, Some(3));
                let fields = event.fields.as_ref().expect("fields");
                let text = |name| fields.get(name).and_then(Value::as_bytes).map(<[u8]>::to_vec);
                assert_eq!(
                    [text("comm"), text("path"), text("text")],
                    [b"shop", &b"/bin"[..], b"abc"].map(|t| Some(t.to_vec()))
                );
                assert_eq!(fields.get("ret").and_then(Value::as_i64), Some(-2));
                assert_eq!(fields.get("x").and_then(Value::as_i64), Some(-1));
                assert_eq!(fields.get("pointer").and_then(Value::as_u64), Some(0xffff_8880_0000_1000));
                let numbers = |name| match fields.get(name) {
                    Some(Value::Array(elements)) => elements.iter().filter_map(Value::as_u64).collect(),
                    _ => Vec::new(),
                };
                assert_eq!((numbers("numbers"), numbers("pair")), (vec![0x0201, 0x0403], vec![1, 2]));
            }
            Item::Loss(_) => losses += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(times, [2000, 3000, 3000]);
    assert_eq!(losses, 3, "before the last event, at the end, and on the other CPU");
}

/// The kernel's counter of samples is a time, also on a CPU on which there was not enough time for a sample.
#[test]
fn samples_are_counted_by_their_records() {
    let place = TempDir::new().expect("a directory");
    let dir = place.path().join("trace");
    let mut drain = drain_of(&dir, "perf:sample", EventFormat::sample());
    let mut body = [41_u32.to_le_bytes(), 42_u32.to_le_bytes()].concat();
    body.extend([2000, 0, 10_000_000, 2, 0x5000, 0x4000, 4].map(u64::to_le_bytes).as_flattened());
    drain.add(0, &record(9, &body)).expect("a record");
    let counts = |fired, lost| vec![KernelCounts { fired, lost }];
    let reports = drain.end(&[(0, counts(25_000_000, 1)), (1, counts(3_000_000, 0))]);
    passes(&dir, &reports);
    let event = &reports[0].account.channels[0].events[0];
    assert_eq!((event.fired, event.recorded, event.lost.values().sum()), (2, 1, 1_u64));
    let items: Vec<_> = Trace::open(&dir).expect("a trace").items().collect();
    let Some(Item::Event(sample)) = items.first() else { panic!("{items:?}") };
    let Some(Value::Array(stack)) = sample.fields.as_ref().and_then(|fields| fields.get("callstack")) else {
        panic!("{sample:?}")
    };
    assert_eq!(stack.iter().map(Value::as_u64).collect::<Vec<_>>(), [Some(0x5000), Some(0x4000)]);
}

/// For any raw bytes, and records cut off anywhere, the trace can be read and its account balances.
#[test]
fn any_bytes_give_a_trace_that_balances() {
    let seed = crate::seed::seed();
    let mut state = seed | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for _ in 0..50 {
        let place = TempDir::new().expect("a directory");
        let dir = place.path().join("trace");
        let mut drain = drain(&dir);
        let mut counts = [KernelCounts::default(); 2];
        for _ in 0..random(20) {
            let cpu = random(2) as usize;
            let mut bytes = Vec::new();
            for _ in 0..random(30) {
                let len = 2 + random(120) as usize;
                let mut raw = raw();
                raw.resize(len, 0xee);
                for _ in 0..random(8).min(len as u64 - 2) {
                    raw[2 + random(len as u64 - 2) as usize] = random(256) as u8;
                }
                bytes.push(sample(2000 + random(1 << 40), &raw));
                if random(5) == 0 {
                    let lost = random(100);
                    bytes.push(record(2, &[0_u64.to_le_bytes(), lost.to_le_bytes()].concat()));
                    counts[cpu].lost += lost;
                    counts[cpu].fired += lost;
                }
            }
            let whole = random(bytes.len() as u64 + 1) as usize;
            counts[cpu].fired += bytes.iter().filter(|record| record[0] == 9).count() as u64;
            // Events that are cut off were fired and not stored; losses before them still count.
            let cut = bytes
                .get(whole)
                .filter(|_| random(4) == 0)
                .map(|record| record[..random(record.len() as u64) as usize].to_vec());
            let result = match &cut {
                Some(cut) => drain.add(cpu as u32, &[bytes[..whole].concat(), cut.clone()].concat()),
                None => drain.add(cpu as u32, &bytes.concat()),
            };
            assert_eq!(result.is_err(), cut.is_some_and(|cut| !cut.is_empty()));
            drain.drain();
        }
        let reports = drain.end(&[(0, vec![counts[0]]), (1, vec![counts[1]])]);
        passes(&dir, &reports);
        let events = Trace::open(&dir).expect("a trace").items().filter(|item| matches!(item, Item::Event(_))).count();
        assert_eq!(events as u64, reports[0].account.channels[0].events[0].recorded);
    }
}

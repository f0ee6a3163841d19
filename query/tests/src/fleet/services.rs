//! The traced program of a host. Each service is a thread that plays a day.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tracepoint::Agent;

use super::Outcome;
use super::day::{Day, HOURS, Random, Service};

tracepoint::define_trace! {
    provider = "fleet";

    /// A request was answered.
    request(id: u64, path: &str, nanos: u64, status: u16) { id: u64 = id, path: str = path, nanos: u64 = nanos, status: u16 = status }

    /// A database was queried.
    query(id: u64, table: &str, rows: u32, nanos: u64) { id: u64 = id, table: str = table, rows: u32 = rows, nanos: u64 = nanos }

    /// A part of a job was completed.
    item(job: u32, key: u64, bytes: u32) { job: u32 = job, key: u64 = key, bytes: u32 = bytes }
}

const PATHS: [&str; 8] =
    ["/", "/login", "/cart", "/search", "/account/orders", "/static/style.css", "/static/main.js", "/api/v1/prices"];
const TABLES: [&str; 4] = ["users", "orders", "prices", "sessions"];

/// The services' own report.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Events fired.
    pub fired: u64,
    /// Processor time in seconds.
    pub processor_seconds: f64,
}

/// Writes the process id to the file `pid`, waits for a session, and plays a day.
///
/// # Errors
/// If the agent cannot be started, the file cannot be written, or no session starts within two minutes.
pub fn play(day: &Day, host: u64, pid: &Path) -> Outcome<ServiceReport> {
    let _agent = Agent::start()?;
    fs::write(pid, std::process::id().to_string())?;
    let waiting = Instant::now();
    while !(trace_request_enabled() && trace_query_enabled() && trace_item_enabled()) {
        if waiting.elapsed() > Duration::from_secs(120) {
            return Err("no session records this program".into());
        }
        sleep(Duration::from_millis(5));
    }
    let fired = std::thread::scope(|scope| {
        let services = Service::ALL.map(|service| scope.spawn(move || serve(day, host, service)));
        services.into_iter().map(|service| service.join().unwrap_or_default()).sum()
    });
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Ok(ServiceReport { fired, processor_seconds: time.tv_sec as f64 + time.tv_nsec as f64 / 1e9 })
}

/// Plays a service's day. Returns the number of events fired.
fn serve(day: &Day, host: u64, service: Service) -> u64 {
    let mut random = Random::new(day.seed ^ (host << 16) ^ (service as u64 + 1));
    let (started, mut fired) = (Instant::now(), 0);
    for number in 0..HOURS {
        let hour = day.hour(host, service, number);
        (0..hour.burst).for_each(|_| fire(service, &mut random, &mut fired));
        let begin = day.played * number;
        let paced = day.paced(hour);
        for event in 0..paced {
            // Events come in groups of one to eight; the groups are spaced so that the average rate holds.
            if event == 0 || random.below(8) == 0 {
                let due = begin + Duration::from_secs_f64(event as f64 / hour.rate);
                sleep(due.saturating_sub(started.elapsed()));
            }
            fire(service, &mut random, &mut fired);
        }
        sleep((begin + day.played).saturating_sub(started.elapsed()));
    }
    fired
}

fn fire(service: Service, random: &mut Random, fired: &mut u64) {
    *fired += 1;
    let (a, b) = (random.number(), random.number());
    // Durations between 50 us and about 50 ms; short ones are more frequent.
    let nanos = 50_000 + (1_u64 << (a >> 60)) * (a % 1500);
    match service {
        Service::Web => {
            // One in 64 requests fails.
            let status = if b % 64 == 0 { 500 } else { 200 };
            let path = PATHS[(b >> 8) as usize % PATHS.len()];
            tracepoint::trace!(request(*fired, path, nanos, status));
        }
        Service::Db => {
            let table = TABLES[(b >> 8) as usize % TABLES.len()];
            tracepoint::trace!(query(*fired, table, (b >> 54) as u32, nanos));
        }
        Service::Batch => tracepoint::trace!(item((*fired / 1000) as u32, b, (a % 65_536) as u32)),
    }
}

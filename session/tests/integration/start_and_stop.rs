//! Sessions start and stop while threads fire continuously, and every one of them balances.

use crate::common::{Outcome, assert_balances, event, lost, place, view};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "busy";
    pub tick(n: u64, text: &str) { n: u64 = n, text: str = text }
}

const SESSIONS: u32 = 20;

#[test]
fn every_session_balances_under_load() -> Outcome {
    own_process!();
    let place = place();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    tracepoint::trace!(tick(n, "tock"));
                    n += 1;
                }
            });
        }
        let result = sessions(place.path());
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn sessions(place: &std::path::Path) -> Outcome {
    for number in 0..SESSIONS {
        let dir = place.join(number.to_string());
        let size = 32 << 10;
        let channel = if number % 2 == 0 { Channel::discard(size) } else { Channel::overwrite(size) };
        let session =
            Session::builder("load").events("busy:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
        thread::sleep(Duration::from_millis(5));
        let summary = session.stop()?;
        let tick = event(&summary, "busy:tick");
        assert_eq!(tick.fired, tick.recorded + lost(tick));
        assert_balances(&dir);
        assert_eq!(view(&[&dir]).discarded_events(), lost(tick));
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

//! Text has lines for losses: discarded and overwritten events.

use crate::common::{Outcome, Recording, Shared};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::TextSink;

tracepoint::define_trace! {
    provider = "loss";
    pub event(n: u64) { n: u64 = n }
}

const EVENTS: u64 = 1_000;

#[test]
fn events_and_losses_add_up() -> Outcome {
    for (config, what) in
        [(Channel::discard(4 << 10).overflow(0), "events"), (Channel::overwrite(4 << 10), "overwritten")]
    {
        let out = Shared::default();
        let recording = Recording::start(config, vec![Box::new(TextSink::new(out.clone()))])?;
        (0..EVENTS).for_each(|n| tracepoint::trace!(event(n)));
        let report = recording.finish().remove(0);
        assert!(report.error.is_none(), "{report:?}");
        let lines = out.lines();
        let (losses, events): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.starts_with("[lost: "));
        let [loss] = losses.as_slice() else { return Err(format!("{losses:?}").into()) };
        let words: Vec<_> = loss.split(' ').collect();
        assert_eq!(words[2].trim_end_matches(','), what, "{loss}");
        assert_eq!(events.len() as u64 + words[1].parse::<u64>()?, EVENTS, "{loss}");
        assert!(loss.ends_with(", in channel0_0]"), "{loss}");
    }
    Ok(())
}

//! Output as JSON objects, one per line.
//!
//! `{"type":"session_begin","layout":"batch","trace":UUID,"earlier":N}`; `trace_begin`, `stop_sent`, `trace_end` and `session_end` without
//! members; events of batches as in `tracectl view --json`, those of the legacy layout as
//! `{"type":"event","seq":N,"time_ns":N,"content":…}`; losses as `{"type":"loss","kind":…}` with their numbers; `{"type":"late","events":N}`
//! for events that were reported as lost and arrived later; finally `{"type":"end","ending":…}` with all counts.

use super::{Output, each_event, summary};
use crate::failure::Failure;
use crate::output;
use serde_json::{Value, json};
use std::io::Write;
use tracepoint_reader::json::Text;
use tracepoint_reader::udp::{BatchDecoder, Counts, EventBatch, Layout, LossReport, Report, SessionEnd};
use tracepoint_reader::{Item, account::uuid_text};

pub(super) struct Json {
    out: output::Raw,
    decoder: BatchDecoder,
}

impl Json {
    pub(super) fn new() -> Self {
        Self { out: output::raw(), decoder: BatchDecoder::default() }
    }

    fn object(&mut self, object: &Value) -> Result<bool, Failure> {
        output::json_line(&mut self.out, object)?;
        Ok(true)
    }

    fn batch(&mut self, batch: &EventBatch) -> Result<bool, Failure> {
        let out = &mut self.out;
        each_event(&mut self.decoder, batch, |event| tracepoint_reader::json::write_item(out, &Item::Event(event)))
    }
}

impl Output for Json {
    fn write(&mut self, report: Report) -> Result<bool, Failure> {
        let alone = |name: &str| json!({ "type": name });
        let object = match report {
            Report::SessionBegin(Layout::Legacy) => json!({ "type": "session_begin", "layout": "legacy" }),
            Report::SessionBegin(Layout::Batch(welcome)) => json!({
                "type": "session_begin",
                "layout": "batch",
                "trace": uuid_text(welcome.uuid),
                "earlier": welcome.earlier,
            }),
            Report::Metadata(text) => {
                self.decoder.grow(&text);
                return Ok(true);
            }
            Report::Batch(batch) => return self.batch(&batch),
            Report::Event(event) => {
                json!({ "type": "event", "seq": event.seq, "time_ns": event.time_ns, "content": Text(&event.content) })
            }
            Report::Lost(lost) => loss(lost),
            Report::Late(events) => json!({ "type": "late", "events": events }),
            Report::TraceBegin => alone("trace_begin"),
            Report::StopSent => alone("stop_sent"),
            Report::TraceEnd => alone("trace_end"),
            Report::SessionEnd => alone("session_end"),
            _ => return Ok(true),
        };
        self.object(&object)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    fn finish(mut self: Box<Self>, ending: SessionEnd, counts: &Counts) -> Result<bool, Failure> {
        let mut end = json!(counts);
        end["type"] = "end".into();
        end["ending"] = summary::ending_name(ending).into();
        self.object(&end)?;
        self.flush()?;
        Ok(true)
    }
}

fn loss(lost: LossReport) -> Value {
    match lost {
        LossReport::Messages { first, count } => {
            json!({ "type": "loss", "kind": "messages", "first": first, "messages": count })
        }
        LossReport::Events(count) => json!({ "type": "loss", "kind": "events", "events": count }),
        LossReport::BeforeOffer(count) => json!({ "type": "loss", "kind": "before_offer", "events": count }),
        LossReport::Metadata(bytes) => json!({ "type": "loss", "kind": "metadata", "bytes": bytes }),
        LossReport::Unsent(losses) => {
            let mut object = json!(losses);
            object["type"] = "loss".into();
            object["kind"] = "unsent".into();
            object["events"] = losses.total().into();
            object
        }
        _ => json!({ "type": "loss", "kind": "beginning" }),
    }
}

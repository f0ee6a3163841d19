tracepoint::define_trace! {
    span slow(ns: u64) if ns > 1000 { ns }
}

fn main() {}

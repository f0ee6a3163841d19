tracepoint::define_trace! {
    span request(id: u64) { id, span_id: u64 = id, parent_id: u64 = 0 }
}

fn main() {}

tracepoint::define_trace! {
    span request(id: u64) { id }
    request(id: u64) { id }
    query_end(id: u64) { id }
    span query(id: u64) { id }
}

fn main() {}

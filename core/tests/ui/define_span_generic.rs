tracepoint::define_trace! {
    span request<T>(id: u64) { id }
    async span(id: u64) { id }
}

fn main() {}

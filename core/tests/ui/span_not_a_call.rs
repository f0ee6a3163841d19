tracepoint::define_trace! {
    provider = "ui";
    span request(id: u64) { id }
    plain(id: u64) { id }
}

fn main() {
    let _span = tracepoint::span!(request);
    let _span = tracepoint::span!(parent: 3);
    let _span = tracepoint::span!(plain(1));
    tracepoint::trace!(request(1));
}

tracepoint::define_trace! {
    provider = "ui";
    span request(id: u64) { id }
}

fn main() {
    let _span = tracepoint::span!(request("one"));
    let _span = tracepoint::span!(request());
    let _span = tracepoint::span!(parent: 7, request(1));
}

tracepoint::define_trace! {
    provider = "ui";
    span request(id: u64, path: &str) { id, path }
    note(id: u64) { id }
    hook(list: &[u8]);
}

mod inner {
    tracepoint::define_trace! {
        pub async span job() {}
    }
}

fn main() {
    tracepoint::trace!(request(1, "/"));
    tracepoint::trace!(inner::job());
    let _span = tracepoint::span!(note(1));
    let outer = tracepoint::span!(inner::job());
    let _inner = tracepoint::span!(parent: &outer, hook(&[]));
}

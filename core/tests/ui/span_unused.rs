#![deny(unused_must_use)]

tracepoint::define_trace! {
    provider = "ui";
    span request(id: u64) { id }
}

fn main() {
    tracepoint::span!(request(1));
}

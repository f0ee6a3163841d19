tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn function(_: u32) {}

struct Type(u32);

mod inner {}

fn main() {
    tracepoint::trace!(function(1));
    tracepoint::trace!(Type(1));
    tracepoint::trace!(missing(1));
    tracepoint::trace!(inner::x(1));
}

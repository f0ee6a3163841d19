tracepoint::define_trace! {
    x(n: u32, text: &str);
}

mod inner {
    tracepoint::define_trace! {
        y(n: u32);
    }
}

fn main() {
    tracepoint::trace!(inner::y(1));
}

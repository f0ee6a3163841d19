tracepoint::define_trace! {
    x(u32);
}

fn main() {}

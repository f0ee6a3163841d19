tracepoint::define_trace! {
    x(n: u32);
    x_enabled(n: u32);
    x_prio(n: u32);
}

fn main() {}

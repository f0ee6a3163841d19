tracepoint::define_trace! {
    x(value: &mut u32);
}

fn main() {}

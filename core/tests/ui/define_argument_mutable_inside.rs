tracepoint::define_trace! {
    x(value: Option<&mut u32>);
}

fn main() {}

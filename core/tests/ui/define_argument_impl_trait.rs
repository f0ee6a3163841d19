tracepoint::define_trace! {
    x(value: impl Copy);
}

fn main() {}

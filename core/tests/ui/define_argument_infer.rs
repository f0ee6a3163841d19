tracepoint::define_trace! {
    x(value: _);
}

fn main() {}

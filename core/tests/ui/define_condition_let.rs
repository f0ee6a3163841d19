tracepoint::define_trace! {
    x(n: Option<u32>) if let Some(_) = n;
}

fn main() {}

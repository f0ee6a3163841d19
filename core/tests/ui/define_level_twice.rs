tracepoint::define_trace! {
    #[level(Info)]
    #[level(Debug)]
    x(n: u32);
}

fn main() {}

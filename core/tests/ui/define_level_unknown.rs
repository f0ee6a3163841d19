tracepoint::define_trace! {
    #[level(Trace)]
    x(n: u32);

    #[level]
    y(n: u32);

    #[level = "Info"]
    z(n: u32);
}

fn main() {}

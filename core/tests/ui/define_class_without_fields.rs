tracepoint::define_trace! {
    class io(n: u32);
    read: io;
}

fn main() {}

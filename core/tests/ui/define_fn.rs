tracepoint::define_trace! {
    pub fn x(n: u32);
}

fn main() {}

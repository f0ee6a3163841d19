tracepoint::define_trace! {
    by_reference(&self, n: u32);
    by_value(self);
}

fn main() {}

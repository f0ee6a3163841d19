tracepoint::define_trace! {
    x<T>(value: &T);
    y<'a>(value: &'a u32);
}

fn main() {}

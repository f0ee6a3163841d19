tracepoint::define_trace! {
    x(name: String, list: Vec<u8>) { name: str = &name }
}

fn main() {}

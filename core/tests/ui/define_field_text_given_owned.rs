tracepoint::define_trace! {
    x(name: &str) { name: str = name.to_owned() }
}

fn main() {}

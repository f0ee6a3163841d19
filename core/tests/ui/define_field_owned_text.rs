tracepoint::define_trace! {
    x(name: &String) { name: String = name }
}

fn main() {}

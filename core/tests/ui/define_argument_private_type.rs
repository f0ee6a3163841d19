pub mod inner {
    struct Private;

    tracepoint::define_trace! {
        pub x(value: &Private);
    }
}

fn main() {}

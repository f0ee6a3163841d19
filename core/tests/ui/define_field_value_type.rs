tracepoint::define_trace! {
    x(pid: i64, flag: bool) {
        pid: i32 = pid,
        port: be u16 = pid,
        flag: u8 = flag,
        ratio: f64 = 1,
    }
}

fn main() {}

tracepoint::define_trace! {
    provider = "no spaces";

    #[level(Loud)]
    first(self) { n: u128 = 1 }
    second(n: u32) { a: Pid = n, a: u32 = n, a: u32 = n }
    third: absent;
    fn fourth();
    fifth(n: u32);
    fifth(n: u32);
}

fn main() {}

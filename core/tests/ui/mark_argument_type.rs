fn main() {
    tracepoint::trace_mark!(d, "n %d", 1u32);
    tracepoint::trace_mark!(ld, "n %ld", 1i32);
    tracepoint::trace_mark!(s, "n %s", 1);
    tracepoint::trace_mark!(p, "n %p", 1usize);
    tracepoint::trace_mark!(c, "n %c", "c");
    tracepoint::trace_mark!(f, "n %f", 1);
    tracepoint::trace_mark!(zu, "n %zu", 1u64);
}

fn main() {
    tracepoint::trace_mark!("text", "n %d", 1);
    tracepoint::trace_mark!(a::b, "n %d", 1);
    tracepoint::trace_mark!(größe, "n %d", 1);
    tracepoint::trace_mark!(provider = "no spaces"; n, "n %d", 1);
    tracepoint::trace_mark!(providers = "a"; n, "n %d", 1);
}

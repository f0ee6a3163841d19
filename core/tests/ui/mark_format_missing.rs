fn main() {
    tracepoint::trace_mark!(nothing);
    tracepoint::trace_mark!(nothing,);
    tracepoint::trace_mark!();
}

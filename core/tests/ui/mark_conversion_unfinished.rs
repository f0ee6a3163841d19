fn main() {
    tracepoint::trace_mark!(lone, "n %", 1);
    tracepoint::trace_mark!(width, "n %5", 1);
}

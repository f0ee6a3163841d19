fn main() {
    tracepoint::trace_mark!(y, "n %y", 1);
    tracepoint::trace_mark!(n, "n %n", 1);
    tracepoint::trace_mark!(hs, "n %hs", "a");
    tracepoint::trace_mark!(unicode, "n %é", 1);
    tracepoint::trace_mark!(lll, "n %llld", 1);
}

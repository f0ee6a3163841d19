//! The public macros. Each passes `$crate` to its procedural macro, so that the expansion names this crate correctly even if the caller
//! has renamed the dependency.

/// Declares tracepoints.
///
/// # Forms
///
/// ```
/// # use std::path::PathBuf;
/// # pub struct Task { pid: i32, comm: String, addr: u64, port: u16, digest: [u8; 32], bytes: Vec<u8>, path: PathBuf, mode: u8 }
/// tracepoint::define_trace! {
///     provider = "sched"; // the part of the event names before the colon; by default the crate's name
///
///     /// The scheduler leaves `prev` and runs `next`. (This goes into the docs and into the trace's metadata.)
///     #[level(Debug)] // one of the 15 levels of LTTng, see `Level`; by default DebugLine
///     pub sched_switch(prev: &Task, next: &Task) { // a typed prototype
///         prev_pid: i32 = prev.pid, // fields: basic types, from expressions
///         next_pid: i32 = next.pid,
///         prev_comm: str = &prev.comm, // text
///         addr: hex u64 = prev.addr, // a display base: bin, oct, dec, hex
///         port: be u16 = prev.port, // network order in the record
///         digest: [u8; 32] = prev.digest, // a fixed array
///         data: [u8] = &prev.bytes, // a sequence, its length in front
///         file: path = &prev.path, // the bytes of a path
///         mode: enum u8 { Idle = 0, Run = 1 } = prev.mode,
///     }
///
///     /// A bare hook: typed probes can be connected to it, but it has no fields to record.
///     pub sched_migrate(task: &Task, dest_cpu: u32);
///
///     /// Conditional: fires only where the condition holds.
///     pub slow_request(ns: u64) if ns > 1_000_000 { ns } // the argument of this name, with its type
///
///     /// A span, which `span!(request(7))` begins: `request_begin` and `request_end`.
///     pub span request(id: u64) { id }
///
///     // A class: one prototype and field block, several events.
///     class io(fd: i32, n: u64) { fd, n }
///     pub read: io;
///     pub write: io;
/// }
/// ```
///
/// Every probe receives the arguments: by shared reference, or by value if they are `Copy`. Write an elided lifetime of a type without `&`
/// as `'_`: `Cow<'_, str>`. A type that is invariant in such a lifetime (`&Cell<&str>`) cannot be an argument.
/// A field without type and value is the argument with that name, if its type, or the type it refers to, is a field type.
/// [`field`](tracepoint_ring::field) describes the encoding of each:
///
/// | field type | its value | in the record |
/// |---|---|---|
/// | integers up to 64 bits, `bool`, `f32`, `f64` | of this type | as it is; `usize` and `isize` with 64 bits |
/// | `str` | a `&str` | text |
/// | `String`, `Cow<str>`, `Arc<str>`, `Rc<str>`, `Box<str>` | of this type, or a reference; it is not moved | text |
/// | `path`, `Path`, `PathBuf` | a reference to a path | its bytes |
/// | `[T; N]`, `[T]` | an array, a slice of integers, `bool`, `f32` or `f64` | the elements |
/// | `enum R { Label = 1, … }` | an integer of type `R` | the integer |
/// | `enum Type` | of a type that derives [`TraceEnum`](crate::TraceEnum) | the number of the variant |
/// | `Duration` | of this type | nanoseconds, as `u64`; text shows a unit |
/// | `SystemTime` | of this type | nanoseconds since 1970, as `i64` |
/// | `IpAddr`, `SocketAddr` and their v4 and v6 forms, `Uuid` | anything that is `Display` | the text, at most 64 bytes |
/// | `display`, `display(N)` | anything that is `Display` | the text, at most 256 or `N` bytes; a longer one is cut off and ends with `…` |
/// | `debug`, `debug(N)` | anything that is `Debug` | the same with `{:?}` |
/// | `Option<T>` | an `Option`, which is not moved | one byte, 0 or 1, and the value if there is one; `T` is any of these but arrays, `enum R { … }` and `Option` |
///
/// The texts of `display` and `debug` are written to a buffer of `N` bytes on the stack before the record is begun, because the code that
/// writes them is the program's and may panic. It allocates only if that code does, and its cost is part of the event's cost.
/// `#[cfg(…)]` on a tracepoint removes the tracepoint and all items that it generates.
///
/// # Generated items
///
/// For a tracepoint `x`, with the visibility of the declaration:
///
/// | item | is |
/// |---|---|
/// | `x` | a type: the path that [`trace!`](crate::trace) takes, and the parameter of its probes' handles |
/// | `trace_x(args)` | fires the tracepoint if it is on; the caller evaluates the arguments in any case |
/// | `trace_x_enabled()` | whether the tracepoint is on, to guard expensive preparation |
/// | `register_trace_x(probe)` | connects `Fn(args) + Send + Sync + 'static`, returns a [`Probe<x>`](crate::Probe) |
/// | `register_trace_x_prio(priority, probe)` | the same with a priority: higher priorities run earlier, the default is 10 |
/// | `unregister_trace_x(probe)` | disconnects the probe: once this returns, the probe is not running and never runs again |
///
/// A span `x` has the items of the tracepoints `x_begin` and `x_end`, except `trace_x_begin` and `trace_x_end`, and a type `x`, whose path
/// [`span!`](crate::span!) takes. An `async span` also has the items of a span `x_poll`. See [`span`](mod@crate::span).
///
/// # Cost
///
/// While off, a site is one instruction if it can be patched, otherwise a relaxed load and a branch. The lazy form `trace!(x(…))` computes
/// nothing else. The function form `trace_x(…)` adds the computation of the argument expressions before the call:
///
/// | argument | the lazy form | the function form |
/// |---|---|---|
/// | a value in a register, arithmetic on such values | nothing | nothing: the compiler moves it to the cold path |
/// | `&local` | the local lives in memory, not in a register, and is stored whenever it changes, which matters in a loop. `&{ local }`, a reference to a copy that the cold path makes, costs nothing | the same, and a copy does not help |
/// | `v[i]`, a field behind a pointer | nothing | the load and the bounds check |
/// | a call that is not inlined | nothing | the call |
///
/// In either form, if the site is in a loop or the function is complex, the compiler saves the registers used by the cold path at the
/// beginning of the function, once per call. On x86-64 a patched site clobbers one register, `r11`, which calls do not preserve either.
/// `docs/costs.md` lists what recording an event costs.
///
/// A debugger's breakpoint on the first instruction of a function may be on a site. A site with foreign bytes is not changed, and
/// [`platform`](fn@crate::platform) counts it. After the breakpoint has been removed, the next switch of any tracepoint also switches this site.
/// A uprobe on a site executes the instruction from the program's file: until the uprobe is detached, the site is off, regardless of
/// the state of the tracepoint.
#[macro_export]
macro_rules! define_trace {
    ($($block:tt)*) => {
        $crate::__macro_support::define_trace! { $crate, $($block)* }
    };
}

/// Declares a marker by hand and records an event at this place, with fields named by a format string.
///
/// ```
/// # struct Task { pid: i32, state: i64, comm: String }
/// # let (prev, next) = (Task { pid: 1, state: 0, comm: "a".into() }, Task { pid: 2, state: 0, comm: "b".into() });
/// tracepoint::trace_mark!(kernel_sched_switch, "prev_pid %d next_pid %d prev_state %ld", prev.pid, next.pid, prev.state);
/// tracepoint::trace_mark!(provider = "sched"; woken, "comm %s", next.comm);
/// ```
///
/// The format is parsed at compile time, and the arguments are checked against it. The last word before a conversion is the name of its field (`argN`
/// if there is none). The event's provider is the crate's name, unless one is given in front. Arguments are evaluated only if the marker has a
/// subscriber; they may contain `?`, `return` and `.await`.
///
/// | conversion | takes |
/// |---|---|
/// | `%d` `%i` `%u` | `i32`, `u32`; with `hh` 8, `h` 16, `l` `ll` `j` 64 bits, with `z` `t` `isize` or `usize` |
/// | `%x` `%X` `%o` | the unsigned integers, shown in base 16 or 8 |
/// | `%f` `%e` `%g` `%a` | `f64` |
/// | `%s` | text: `str`, `String`, and pointers to them |
/// | `%c` | `char`, recorded as text |
/// | `%p` | a pointer or a reference, recorded as its address |
///
/// Flags, width and precision are accepted and ignored: the record holds the value.
#[macro_export]
macro_rules! trace_mark {
    ($($mark:tt)*) => {
        $crate::__macro_support::trace_mark! { $crate, $($mark)* }
    };
}

/// Begins a span that [`define_trace!`](crate::define_trace) declares, and returns its [`Span`](crate::span::Span), which ends the span when it is
/// dropped. The arguments are evaluated only if the span's events are on.
///
/// ```
/// tracepoint::define_trace! {
///     provider = "doc";
///     span request(id: u64) { id }
///     span query(text: &str) { text }
/// }
///
/// fn answer(id: u64) {
///     let request = tracepoint::span!(request(id));
///     let _query = tracepoint::span!(parent: &request, query("select 1"));
/// } // both end here, the query first
/// # answer(7);
/// ```
///
/// `parent:` takes a [`SpanId`](crate::span::SpanId) or a reference to a span. A span is `Send`: it may end on another thread.
#[macro_export]
macro_rules! span {
    (parent: $parent:expr, $($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        if $($segment)::+::__tracepoint_is_on() {
            $($segment)::+::__tracepoint_begin(<$crate::span::SpanId as ::core::convert::From<_>>::from($parent), $($argument),*)
        } else {
            $($segment)::+::__tracepoint_off()
        }
    };
    (parent: $parent:expr, :: $($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        if ::$($segment)::+::__tracepoint_is_on() {
            ::$($segment)::+::__tracepoint_begin(<$crate::span::SpanId as ::core::convert::From<_>>::from($parent), $($argument),*)
        } else {
            ::$($segment)::+::__tracepoint_off()
        }
    };
    ($($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        $crate::span!(parent: $crate::span::SpanId::NONE, $($segment)::+($($argument),*))
    };
    (:: $($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        $crate::span!(parent: $crate::span::SpanId::NONE, ::$($segment)::+($($argument),*))
    };
    ($($other:tt)*) => {
        $crate::__macro_support::call! { $crate, span, $($other)* }
    };
}

/// Fires a tracepoint if it is on, and evaluates its arguments only then. Prefer this form to the function.
///
/// ```
/// # tracepoint::define_trace! { provider = "doc"; pub opened(fd: i32, name: &str) { fd: i32 = fd, name: str = name } }
/// # fn expensive_name() -> String { unreachable!("the tracepoint is off") }
/// tracepoint::trace!(opened(3, &expensive_name())); // off: `expensive_name` is not called
/// ```
///
/// Name the tracepoint by its path (`trace!(net::events::opened(…))`), or by its name if it is in scope; another macro may pass it, or the complete
/// call, as a fragment of any kind. The arguments are ordinary expressions of the calling function: they may contain `?`, `.await` and `return`, they
/// are not in an `unsafe` context, and their panics reach the caller.
#[macro_export]
macro_rules! trace {
    ($($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        if $($segment)::+::__tracepoint_is_on() {
            $($segment)::+::__tracepoint_fire($($argument),*)
        }
    };
    (:: $($segment:ident)::+ ( $($argument:expr),* $(,)? )) => {
        if ::$($segment)::+::__tracepoint_is_on() {
            ::$($segment)::+::__tracepoint_fire($($argument),*)
        }
    };
    ($($other:tt)*) => {
        $crate::__macro_support::call! { $crate, trace, $($other)* }
    };
}

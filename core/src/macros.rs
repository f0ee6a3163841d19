//! The macros as users know them. Each passes `$crate` on: the path by which the caller knows this crate, whatever its name
//! is there.

/// Declares tracepoints.
///
/// # Forms
///
/// ```
/// # use std::path::PathBuf;
/// # pub struct Task { pid: i32, comm: String, addr: u64, port: u16, digest: [u8; 32], bytes: Vec<u8>, path: PathBuf, mode: u8 }
/// tracepoint::define_trace! {
///     provider = "sched"; // what stands before the colon in the events' names; by default the crate's name
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
///     /// A bare hook: typed probes see it, there is nothing to record.
///     pub sched_migrate(task: &Task, dest_cpu: u32);
///
///     /// Conditional: fires only where the condition holds.
///     pub slow_request(ns: u64) if ns > 1_000_000 { ns: u64 = ns }
///
///     // A class: one prototype and field block, several events.
///     class io(fd: i32, n: u64) { fd: i32 = fd, n: u64 = n }
///     pub read: io;
///     pub write: io;
/// }
/// ```
///
/// Arguments are passed to every probe: by shared reference, or by value if they are `Copy`. A lifetime that is not written
/// with `&` is written `'_`: `Cow<'_, str>`. A type that is invariant in such a lifetime (`&Cell<&str>`) cannot be an argument.
/// Field types are the integers up to 64 bits (`usize` is recorded with 64), `bool`,
/// `f32`, `f64`, `str`, `path`, `[T; N]`, `[T]` and `enum R { … }`; the bytes of each are in [`field`](tracepoint_ring::field).
/// `#[cfg(…)]` on a tracepoint removes all of it.
///
/// # What it makes
///
/// For a tracepoint `x`, with the visibility of the declaration:
///
/// | item | is |
/// |---|---|
/// | `x` | a type: the path that [`trace!`](crate::trace) takes, and the parameter of its probes' handles |
/// | `trace_x(args)` | fires it, if it is on; the caller evaluates the arguments in any case |
/// | `trace_x_enabled()` | whether it is on, to guard long preparation |
/// | `register_trace_x(probe)` | connects `Fn(args) + Send + Sync + 'static`, gives a [`Probe<x>`](crate::Probe) |
/// | `register_trace_x_prio(priority, probe)` | the same with a priority: higher ones run earlier, 10 is usual |
/// | `unregister_trace_x(probe)` | disconnects it: afterwards it is not running and never will again |
///
/// # Cost
///
/// Off, a site is one instruction where it can be patched, else a relaxed load and a branch. The lazy form `trace!(x(…))` computes
/// nothing else. The function form `trace_x(…)` also costs what the caller's argument expressions need before the call:
///
/// | argument | the lazy form | the function form |
/// |---|---|---|
/// | a value that is in a register, arithmetic on such values | nothing | nothing: the compiler moves it to the cold path |
/// | `&local` | nothing; but the local lives in memory, not in a register, and is stored whenever it changes: in a loop that counts. `&{ local }`, a reference to a copy that the cold path makes, costs nothing | the same; the copy does not help |
/// | `v[i]`, a field behind a pointer | nothing | the load and the bounds check |
/// | a call that is not inlined | nothing | the call |
///
/// In either form the registers that the cold path needs to save are saved where the function begins, once for each call, if the
/// site is in a loop or the function is not a simple one. A patched site gives up one register, `r11`, which no call keeps either.
/// What is recorded costs as `docs/costs.md` says.
///
/// A debugger's breakpoint at the first instruction of a function may stand on a site: a site that has foreign bytes is left as it
/// is, and [`platform`](fn@crate::platform) counts it. The next switch after the breakpoint is gone, of whatever tracepoint, makes up
/// for it. An in-kernel probe (a uprobe) on a site runs the instruction that the program's file has there: whatever the tracepoint is,
/// the site is off until the uprobe is detached.
#[macro_export]
macro_rules! define_trace {
    ($($block:tt)*) => {
        $crate::private::define_trace! { $crate, $($block)* }
    };
}

/// Marks a place in the code: a marker by hand, with fields that a format string names.
///
/// ```
/// # struct Task { pid: i32, state: i64, comm: String }
/// # let (prev, next) = (Task { pid: 1, state: 0, comm: "a".into() }, Task { pid: 2, state: 0, comm: "b".into() });
/// tracepoint::trace_mark!(kernel_sched_switch, "prev_pid %d next_pid %d prev_state %ld", prev.pid, next.pid, prev.state);
/// tracepoint::trace_mark!(woken, "comm %s", next.comm);
/// ```
///
/// The format is read when the program is compiled, and arguments are checked against it. The last word before a conversion is
/// the name of its field (`argN` where there is none). The event's provider is the crate's name. Arguments are evaluated only
/// if somebody subscribed; they may contain `?`, `return` and `.await`.
///
/// | conversion | takes |
/// |---|---|
/// | `%d` `%i` `%u` | `i32`, `u32`; with `hh` 8, `h` 16, `l` `ll` `j` 64 bits, with `z` `t` `isize` or `usize` |
/// | `%x` `%X` `%o` | the unsigned integers, shown in base 16 or 8 |
/// | `%f` `%e` `%g` `%a` | `f64` |
/// | `%s` | text: `str`, `String`, and what points to them |
/// | `%c` | `char`, recorded as text |
/// | `%p` | a pointer or a reference, recorded as its address |
///
/// Flags, width and precision are read and have no effect: the record holds the value.
#[macro_export]
macro_rules! trace_mark {
    ($($mark:tt)*) => {
        $crate::private::trace_mark! { $crate, $($mark)* }
    };
}

/// Fires a tracepoint, and evaluates its arguments only if it is on: the form to use.
///
/// ```
/// # tracepoint::define_trace! { provider = "doc"; pub opened(fd: i32, name: &str) { fd: i32 = fd, name: str = name } }
/// # fn expensive_name() -> String { unreachable!("the tracepoint is off") }
/// tracepoint::trace!(opened(3, &expensive_name())); // off: the name is not made
/// ```
///
/// The tracepoint is named by its path (`trace!(net::events::opened(…))`) or by its name where it is in scope; a macro of yours that
/// passes a path on takes it as `$($segment:ident)::+`. The arguments are
/// ordinary expressions of the place where they stand: they may contain `?`, `.await` and `return`, and are not in an `unsafe`
/// context. Their panics are the caller's.
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
        ::core::compile_error!("`trace!` takes a call of a tracepoint: `trace!(path::to::name(argument, …))`")
    };
}

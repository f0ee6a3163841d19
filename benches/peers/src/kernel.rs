//! The list of kernels: loops with an event in them.
//!
//! A kernel's cost per event is compared with the cost of the same kernel without an event. Each kernel has two forms: in the plain one, the
//! processor overlaps the event with the work around it; in the *isolated* one, a fence before the event
//! prevents that.

use crate::site::Site;
use std::arch::asm;
use std::hint::black_box;

/// The number of elements that [`sum`] adds up for each event.
const CHUNK: usize = 64;
/// The number of chunks: 16 KiB, which stay in the first-level cache.
const CHUNKS: usize = 64;

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The name on the command line and in tables.
    pub name: &'static str,
    /// A description.
    pub does: &'static str,
    /// The number of events in an iteration.
    pub events: u64,
    /// True if a fence stands before each event.
    pub isolated: bool,
    /// The index in a [`Compiled`].
    index: usize,
}

/// The kernels with one library's event in each.
#[derive(Clone, Copy, Debug)]
pub struct Compiled([fn(u64) -> u64; KERNELS.len()]);

/// Defines the list and the compiled kernels from one place, so that both have the same entries.
macro_rules! kernels {
    ($($name:literal, $isolated:literal, $function:ident, $events:literal, $does:literal;)*) => {
        /// All kernels, each followed by its isolated form.
        pub const KERNELS: [Kernel; 2 * [$($name),*].len()] = {
            let mut kernels = [
                $(
                    Kernel { name: $name, does: $does, events: $events, isolated: false, index: 0 },
                    Kernel { name: $isolated, does: concat!($does, ", a fence before each event"), events: $events, isolated: true, index: 0 },
                )*
            ];
            let mut index = 0;
            while index < kernels.len() {
                kernels[index].index = index;
                index += 1;
            }
            kernels
        };

        impl Compiled {
            /// Compiles every kernel with the event of `S`.
            pub const fn of<S: Site>() -> Self {
                Self([$($function::<S, false>, $function::<S, true>),*])
            }
        }
    };
}

kernels! {
    "latency", "latency-isolated", latency, 1, "a chain of shifts and xors, six cycles an iteration, and one event";
    "tight", "tight-isolated", tight, 1, "a loop of nothing but one event";
    "leaf", "leaf-isolated", leaf, 1, "calls of a small function with one event in it";
    "eight", "eight-isolated", eight, 8, "a loop of nothing but eight events in a row";
    "sum", "sum-isolated", sum, 1, "a sum that the compiler turns into vector instructions, one event for 64 elements";
}

impl Compiled {
    /// Runs `kernel` for exactly `iterations`. It is out of line, because callgrind collects the instructions below this function.
    #[inline(never)]
    pub fn run(&self, kernel: &Kernel, iterations: u64) -> u64 {
        (self.0[kernel.index])(iterations)
    }
}

/// The kernel called `name`.
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// Waits until all earlier instructions have finished, if the kernel is isolated.
#[inline(always)]
fn fence<const ISOLATED: bool>() {
    if ISOLATED {
        // SAFETY: the instruction changes neither memory nor registers nor flags. It is not declared to read memory, because
        // the compiler would then store values that stay in registers in the plain form.
        unsafe { asm!("lfence", options(nomem, nostack, preserves_flags)) };
    }
}

/// Hides a value from the optimiser. Unlike with `black_box`, the value stays in its register: a store and a load would overlap with
/// the event.
#[inline(always)]
fn opaque(value: u64) -> u64 {
    let mut opaque = value;
    // SAFETY: no instruction, one register.
    unsafe { asm!("/* {} */", inout(reg) opaque, options(nomem, nostack, preserves_flags)) };
    opaque
}

/// The event of iteration `i`.
#[inline(always)]
fn event<S: Site, const ISOLATED: bool>(i: u64, c: u64) {
    fence::<ISOLATED>();
    S::event(i as i32, !(i as i32), c.cast_signed());
}

fn latency<S: Site, const ISOLATED: bool>(iterations: u64) -> u64 {
    let mut x = opaque(0x9e37_79b9_7f4a_7c15);
    for i in 0..iterations {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        // Without this, the compiler would unroll only the loop without an event.
        let i = opaque(i);
        event::<S, ISOLATED>(i, x);
    }
    x
}

fn tight<S: Site, const ISOLATED: bool>(iterations: u64) -> u64 {
    for i in 0..iterations {
        let i = opaque(i);
        event::<S, ISOLATED>(i, i);
    }
    iterations
}

fn leaf<S: Site, const ISOLATED: bool>(iterations: u64) -> u64 {
    #[inline(never)]
    fn called<S: Site, const ISOLATED: bool>(i: u64) -> u64 {
        event::<S, ISOLATED>(i, i);
        opaque(i) ^ (i << 3)
    }
    let mut x = 0;
    for i in 0..iterations {
        x ^= called::<S, ISOLATED>(i);
    }
    x
}

fn eight<S: Site, const ISOLATED: bool>(iterations: u64) -> u64 {
    for i in 0..iterations {
        let i = opaque(i);
        event::<S, ISOLATED>(i, i);
        event::<S, ISOLATED>(i, i + 1);
        event::<S, ISOLATED>(i, i + 2);
        event::<S, ISOLATED>(i, i + 3);
        event::<S, ISOLATED>(i, i + 4);
        event::<S, ISOLATED>(i, i + 5);
        event::<S, ISOLATED>(i, i + 6);
        event::<S, ISOLATED>(i, i + 7);
    }
    iterations
}

fn sum<S: Site, const ISOLATED: bool>(iterations: u64) -> u64 {
    static ELEMENTS: [[u32; CHUNK]; CHUNKS] = [[3; CHUNK]; CHUNKS];
    // The values are constant; the compiler must not use that.
    let elements = black_box(&ELEMENTS);
    let mut total = 0u32;
    for i in 0..iterations {
        let chunk = &elements[opaque(i) as usize % CHUNKS];
        event::<S, ISOLATED>(i, i);
        total = chunk.iter().fold(total, |total, element| total.wrapping_add(*element));
    }
    u64::from(total)
}

//! The one list of kernels: loops with an event in them.
//!
//! A kernel's cost per event is compared with that of the same kernel without an event. Each stands here twice: as it is, where
//! the processor hides what it can of the event behind the work around it, and *isolated*, where a fence before the event keeps
//! it from overlapping with anything earlier.

use crate::site::Site;
use std::arch::asm;
use std::hint::black_box;

/// How many elements [`sum`] adds up for each event.
const CHUNK: usize = 64;
/// How many chunks there are: 16 KiB, which stay in the first-level cache.
const CHUNKS: usize = 64;

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// What it is called on the command line and in tables.
    pub name: &'static str,
    /// What it does.
    pub does: &'static str,
    /// How many events an iteration has.
    pub events: u64,
    /// Whether a fence stands before each event.
    pub isolated: bool,
    /// Where it stands in a [`Compiled`].
    index: usize,
}

/// The kernels with one library's event in each.
#[derive(Clone, Copy, Debug)]
pub struct Compiled([fn(u64) -> u64; KERNELS.len()]);

/// Defines the list and compiles it from one place, so that neither can lack what the other has.
macro_rules! kernels {
    ($($name:literal, $isolated:literal, $function:ident, $events:literal, $does:literal;)*) => {
        /// All of them, each followed by its isolated form.
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
    /// Runs `kernel` for exactly `iterations`. Out of line and by this name, for callgrind collects what happens below it.
    #[inline(never)]
    pub fn run(&self, kernel: &Kernel, iterations: u64) -> u64 {
        (self.0[kernel.index])(iterations)
    }
}

/// The kernel called `name`.
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// Waits until everything earlier has finished, if the kernel is isolated.
#[inline(always)]
fn fence<const ISOLATED: bool>() {
    if ISOLATED {
        // SAFETY: the instruction changes neither memory nor registers nor flags. It is not declared to read memory, for then
        // the compiler would keep values there that stay in registers in the other form.
        unsafe { asm!("lfence", options(nomem, nostack, preserves_flags)) };
    }
}

/// A value that the compiler knows nothing about. Unlike `black_box` it stays in its register, where a store and a load would
/// hide the event behind them.
#[inline(always)]
fn opaque(value: u64) -> u64 {
    let mut opaque = value;
    // SAFETY: no instruction, one register.
    unsafe { asm!("/* {} */", inout(reg) opaque, options(nomem, nostack, preserves_flags)) };
    opaque
}

/// The event at the `i`th turn.
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
        // Without it the loop would be unrolled where there is no event, and only there.
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
    // The compiler sees that they are constant, and must not conclude anything from it.
    let elements = black_box(&ELEMENTS);
    let mut total = 0u32;
    for i in 0..iterations {
        let chunk = &elements[opaque(i) as usize % CHUNKS];
        event::<S, ISOLATED>(i, i);
        total = chunk.iter().fold(total, |total, element| total.wrapping_add(*element));
    }
    u64::from(total)
}

//! How many of an event's instructions the processor executes while it reads its counter. `overlap [ROUNDS]` prints a Markdown table with medians of
//! interleaved rounds: the time of a number of instructions, and the time that the same instructions add to a loop with `rdtsc`. The instructions are
//! independent additions, or increments of counters in memory, each in a cache line of its own.
//!
//! A recorded event is a clock reading and some fifty other instructions, most of which do not depend on it. If the second column stays near 0, they
//! are hidden behind the reading; if it is as large as the first, the processor executes nothing meanwhile, and each instruction costs its full time.

#[cfg(target_arch = "x86_64")]
fn main() -> std::process::ExitCode {
    let rounds = std::env::args().nth(1).map_or(Some(101), |rounds| rounds.parse().ok());
    let Some(rounds @ 1..) = rounds else {
        eprintln!("usage: overlap [ROUNDS]");
        return std::process::ExitCode::from(2);
    };
    x86_64::measure(rounds);
    std::process::ExitCode::SUCCESS
}

#[cfg(not(target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    eprintln!("overlap: measures `rdtsc`, which x86-64 alone has");
    std::process::ExitCode::FAILURE
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::asm;
    use std::time::Instant;

    const PASSES: u32 = 50_000;

    /// Counters in memory, each in a cache line of its own.
    #[repr(C, align(64))]
    #[derive(Clone, Copy, Default)]
    struct Line([u64; 8]);

    const LINES: usize = 8;

    /// The time of one pass of a loop with `4 * FOURS` independent additions and `COUNTERS` increments in memory, in ns, with a reading of the counter
    /// before them or without.
    fn pass<const FOURS: usize, const COUNTERS: usize, const READS: bool>() -> f64 {
        const { assert!(COUNTERS <= LINES) };
        let mut lines = [Line::default(); LINES];
        let begin = Instant::now();
        // SAFETY: changes only the registers that are declared, and `COUNTERS` words at intervals of 64 bytes, which are in `lines`.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                ".rept {reads}", "rdtsc", ".endr",
                ".rept {fours}",
                "lea r8, [rsi + 1]", "lea r9, [rsi + 2]", "lea r10, [rsi + 3]", "lea r11, [rsi + 4]",
                ".endr",
                ".set place, 0",
                ".rept {counters}",
                "add qword ptr [rcx + place], 1",
                ".set place, place + 64",
                ".endr",
                "dec rdi",
                "jnz 2b",
                reads = const READS as usize,
                fours = const FOURS,
                counters = const COUNTERS,
                inout("rdi") u64::from(PASSES) => _,
                in("rsi") 0_u64,
                in("rcx") lines.as_mut_ptr(),
                out("rax") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                options(nostack),
            );
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(PASSES)
    }

    /// A row: its label, and the loop without and with a reading of the counter.
    type Row = (&'static str, fn() -> f64, fn() -> f64);

    const fn row<const FOURS: usize, const COUNTERS: usize>(label: &'static str) -> Row {
        (label, pass::<FOURS, COUNTERS, false>, pass::<FOURS, COUNTERS, true>)
    }

    const NOTHING: Row = row::<0, 0>("`rdtsc` alone");
    const ROWS: [Row; 6] = [
        row::<5, 0>("20 additions"),
        row::<10, 0>("40 additions"),
        row::<15, 0>("60 additions"),
        row::<20, 0>("80 additions"),
        row::<0, 4>("4 counters in memory"),
        row::<0, 8>("8 counters in memory"),
    ];

    pub(super) fn measure(rounds: usize) {
        let mut times = [const { [Vec::new(), Vec::new()] }; ROWS.len() + 1];
        for _ in 0..rounds {
            for ((_, alone, behind), [of_alone, of_behind]) in [NOTHING].iter().chain(&ROWS).zip(&mut times) {
                of_alone.push(alone());
                of_behind.push(behind());
            }
        }
        let medians = times.map(|both| {
            both.map(|mut times| {
                times.sort_unstable_by(f64::total_cmp);
                times[rounds / 2]
            })
        });
        let [[loop_alone, loop_behind], medians @ ..] = medians;
        println!("| instructions | by themselves, ns | added to `rdtsc`, ns | hidden, % |\n|---|---|---|---|");
        println!("| {} | {:.2} | – | – |", NOTHING.0, loop_behind - loop_alone);
        for ((label, ..), [alone, behind]) in ROWS.iter().zip(medians) {
            let (own, added) = (alone - loop_alone, behind - loop_behind);
            println!("| {label} | {own:.2} | {added:.2} | {:.0} |", 100.0 * (1.0 - added / own));
        }
    }
}

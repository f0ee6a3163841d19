//! How many of an event's instructions the processor executes while it reads its counter. `overlap [ROUNDS]` prints a Markdown table with medians of
//! interleaved rounds: the time of a number of independent instructions, and the time that the same instructions add to a loop with `rdtsc`.
//!
//! A recorded event is a clock reading and some fifty other instructions that do not depend on it. If the second column stays near 0, they are hidden
//! behind the reading; if it is as large as the first, the processor executes nothing meanwhile, and each instruction costs its full time.

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
    /// Numbers of instructions, four at a time.
    const COUNTS: [usize; 5] = [0, 20, 40, 60, 80];

    /// The time of one pass of a loop with `4 * FOURS` independent instructions, in ns, with a reading of the counter before them or without.
    fn pass<const FOURS: usize, const READS: bool>() -> f64 {
        let begin = Instant::now();
        // SAFETY: changes only the registers that are declared, reads the counter, and accesses no memory.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                ".rept {reads}", "rdtsc", ".endr",
                ".rept {fours}",
                "lea r8, [rsi + 1]", "lea r9, [rsi + 2]", "lea r10, [rsi + 3]", "lea r11, [rsi + 4]",
                ".endr",
                "dec rdi",
                "jnz 2b",
                reads = const READS as usize,
                fours = const FOURS,
                inout("rdi") u64::from(PASSES) => _,
                in("rsi") 0_u64,
                out("rax") _, out("rdx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                options(nomem, nostack),
            );
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(PASSES)
    }

    pub(super) fn measure(rounds: usize) {
        let alone = [pass::<0, false>, pass::<5, false>, pass::<10, false>, pass::<15, false>, pass::<20, false>];
        let behind = [pass::<0, true>, pass::<5, true>, pass::<10, true>, pass::<15, true>, pass::<20, true>];
        let mut times = [const { Vec::new() }; 2 * COUNTS.len()];
        for _ in 0..rounds {
            for (pass, times) in alone.iter().chain(&behind).zip(&mut times) {
                times.push(pass());
            }
        }
        let medians = times.map(|mut times| {
            times.sort_unstable_by(f64::total_cmp);
            times[rounds / 2]
        });
        let (alone, behind) = medians.split_at(COUNTS.len());
        println!(
            "| independent instructions | by themselves, ns | added to `rdtsc`, ns | hidden, % |\n|---|---|---|---|"
        );
        println!("| `rdtsc` alone | {:.2} | – | – |", behind[0] - alone[0]);
        for (n, count) in COUNTS.iter().enumerate().skip(1) {
            let (own, added) = (alone[n] - alone[0], behind[n] - behind[0]);
            println!("| {count} | {own:.2} | {added:.2} | {:.0} |", 100.0 * (1.0 - added / own));
        }
    }
}

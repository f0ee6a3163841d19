//! Criterion over the variants of one mode.

use criterion::{Criterion, Throughput};
use std::time::Duration;
use tracepoint_peers::contender::{Contender, PASSES};
use tracepoint_peers::kernel::{KERNELS, Kernel};
use tracepoint_peers::variant::{Mode, Variant};
use tracepoint_peers::{cpu, peer};

/// Measures every variant of a mode in every kernel, and then checks each.
pub(crate) fn run(mode: Mode) {
    cpu::pin();
    // Short by default, because there are hundreds of them; criterion's own options override it.
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(50))
        .measurement_time(Duration::from_millis(200))
        .sample_size(20)
        .configure_from_args();
    let base = peer::all().next().expect("there is a base");
    for belongs in PASSES {
        let variants: Vec<_> = peer::all().filter(|variant| variant.mode == mode && belongs(variant)).collect();
        // Variants that cannot be used are named below.
        let enter = |variant: &&'static Variant| Contender::enter(variant).ok();
        let mut contenders: Vec<Contender> = variants.iter().filter_map(enter).collect();
        if contenders.is_empty() {
            continue;
        }
        if mode != Mode::Off {
            contenders.insert(0, Contender::enter(base).expect("no site is always possible"));
        }
        for kernel in &KERNELS {
            measure(&mut criterion, &mut contenders, kernel);
        }
        for contender in contenders {
            let name = contender.variant().name;
            let account = contender.leave();
            if account.lost > 0 {
                eprintln!("{name}: lost {} of {} events", account.lost, account.events);
            }
        }
        // Before the next pass, whose variants change the program.
        for variant in variants {
            match variant.check() {
                Ok(check) => assert!(check.holds(), "{}: {check}", variant.name),
                Err(reason) => eprintln!("{}: not usable: {reason}", variant.name),
            }
        }
    }
    criterion.final_summary();
}

fn measure(criterion: &mut Criterion, contenders: &mut [Contender], kernel: &Kernel) {
    let mut group = criterion.benchmark_group(kernel.name);
    group.throughput(Throughput::Elements(kernel.events));
    for contender in contenders {
        group.bench_function(contender.variant().name, |bencher| {
            bencher.iter_custom(|iterations| {
                let sample = contender.sample(kernel, iterations).expect("it entered");
                // The number of measured events may differ from the requested one, because the warm-up is not counted.
                sample.time.mul_f64((iterations * kernel.events) as f64 / sample.events as f64)
            });
        });
    }
    group.finish();
}

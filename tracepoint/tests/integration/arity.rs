//! Tracepoints with any number of arguments and fields, from none to 32.

use crate::common::Recorded;
use std::sync::Mutex;

macro_rules! arity {
    ($name:ident: $($argument:ident)*) => {
        #[test]
        fn $name() {
            tracepoint::define_trace! {
                provider = "arity";
                $name($($argument: u32),*) { $($argument: u32 = $argument),* }
            }
            static SEEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
            let next = std::cell::Cell::new(0);
            // The arguments are evaluated in order.
            #[allow(unused_variables)]
            let count = |name: &str| {
                next.set(next.get() + 1);
                next.get()
            };
            let recorded = Recorded::of(concat!("arity:", stringify!($name)));
            let found = tracepoint::find(concat!("arity:", stringify!($name))).unwrap();
            let probe = found
                .register::<fn($(arity!(@type $argument)),*)>(|$($argument),*| {
                    let seen: &[u32] = &[$($argument),*];
                    SEEN.lock().unwrap().extend(seen);
                })
                .unwrap();
            tracepoint::trace!($name($(count(stringify!($argument))),*));
            let expected: Vec<u32> = (1..=next.get()).collect();
            assert_eq!(*SEEN.lock().unwrap(), expected);
            assert_eq!(recorded.last(), expected.iter().map(u32::to_string).collect::<Vec<_>>());
            assert_eq!(found.arguments().len(), expected.len());
            probe.unregister();
        }
    };
    (@type $argument:ident) => {
        u32
    };
}

arity!(of_0:);
arity!(of_1: a1);
arity!(of_2: a1 a2);
arity!(of_3: a1 a2 a3);
arity!(of_4: a1 a2 a3 a4);
arity!(of_5: a1 a2 a3 a4 a5);
arity!(of_6: a1 a2 a3 a4 a5 a6);
arity!(of_7: a1 a2 a3 a4 a5 a6 a7);
arity!(of_8: a1 a2 a3 a4 a5 a6 a7 a8);
arity!(of_9: a1 a2 a3 a4 a5 a6 a7 a8 a9);
arity!(of_10: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10);
arity!(of_11: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11);
arity!(of_12: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12);
arity!(of_13: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13);
arity!(of_14: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14);
arity!(of_15: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15);
arity!(of_16: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16);
arity!(of_17: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17);
arity!(of_18: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18);
arity!(of_19: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19);
arity!(of_20: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20);
arity!(of_21: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21);
arity!(of_22: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22);
arity!(of_23: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23);
arity!(of_24: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24);
arity!(of_25: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25);
arity!(of_26: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26);
arity!(of_27: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27);
arity!(of_28: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28);
arity!(of_29: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28 a29);
arity!(of_30: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28 a29 a30);
arity!(of_31: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28 a29 a30 a31);
arity!(of_32: a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15 a16 a17 a18 a19 a20 a21 a22 a23 a24 a25 a26 a27 a28 a29 a30 a31 a32);

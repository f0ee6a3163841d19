//! A tracepoint can be named by any path, like other items.

use crate::common::Recorded;

mod outer {
    pub(crate) mod inner {
        tracepoint::define_trace! {
            provider = "paths";
            pub(crate) deep(n: u32) { n: u32 = n }
        }

        pub(crate) fn fire() {
            tracepoint::trace!(deep(1));
            tracepoint::trace!(self::deep(2));
            tracepoint::trace!(super::shallow(1));
            tracepoint::trace!(super::super::top(1));
        }
    }

    tracepoint::define_trace! {
        provider = "paths";
        pub(super) shallow(n: u32) { n: u32 = n }
    }

    pub(crate) use inner::deep as renamed;
}

tracepoint::define_trace! {
    provider = "paths";
    top(n: u32) { n: u32 = n }
}

macro_rules! exported {
    ($n:expr) => {
        tracepoint::trace!($crate::paths::outer::inner::deep($n))
    };
}

#[test]
fn trace_works_by_every_path() {
    let [deep, shallow, top] = ["deep", "shallow", "top"].map(|name| Recorded::of(&format!("paths:{name}")));
    outer::inner::fire();
    tracepoint::trace!(outer::inner::deep(3));
    tracepoint::trace!(crate::paths::outer::inner::deep(4));
    tracepoint::trace!(outer::renamed(5));
    exported!(6);
    {
        use outer::inner::*;
        tracepoint::trace!(deep(7));
        trace_deep(8);
    }
    outer::inner::trace_deep(9);
    assert_eq!(deep.all().concat(), ["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    tracepoint::trace!(crate::paths::outer::shallow(2));
    assert_eq!(shallow.all().concat(), ["1", "2"]);
    tracepoint::trace!(self::top(2,));
    assert_eq!(top.all().concat(), ["1", "2"]);
}

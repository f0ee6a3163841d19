//! The tables where sites load flags: slices of `linkme`. A slice covers one linked object, so a program sees the tracepoints of the
//! object that contains the core only.

use super::{MARKERS, Marker, TRACEPOINTS, Tracepoint};
use tracepoint_ring::update::UpdateGuard;

/// Puts a static into a table: `__tracepoint_list!(MARKERS: Marker, STATIC)`, or `TRACEPOINTS: Tracepoint`.
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_list {
    ($table:ident: $ty:ident, $listed:path) => {
        const _: () = {
            #[$crate::private::linkme::distributed_slice($crate::private::$table)]
            #[linkme(crate = $crate::private::linkme)]
            static __TRACEPOINT_ENTRY: &$crate::private::$ty = &$listed;
        };
    };
}

pub(super) fn tracepoints(_: &UpdateGuard<'_>) -> Vec<&'static Tracepoint> {
    TRACEPOINTS.to_vec()
}

pub(super) fn markers(_: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    MARKERS.to_vec()
}

pub(super) const fn has_several_objects(_: &UpdateGuard<'_>) -> bool {
    false
}

//! The tables where sites load flags: slices of `linkme`. A slice covers one linked object, so a program sees the tracepoints of the
//! object that contains the core only.

use super::{MARKERS, Marker, TRACEPOINTS, Tracepoint};
use tracepoint_ring::update::UpdateGuard;

pub(super) fn tracepoints(_: &UpdateGuard<'_>) -> Vec<&'static Tracepoint> {
    TRACEPOINTS.to_vec()
}

pub(super) fn markers(_: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    MARKERS.to_vec()
}

pub(super) const fn has_several_objects(_: &UpdateGuard<'_>) -> bool {
    false
}

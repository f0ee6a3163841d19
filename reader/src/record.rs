//! Records in the tracer's own layout, which are read faster than the general decoder could.

pub(crate) mod decode;
pub(crate) mod layout;
pub(crate) mod sizes;

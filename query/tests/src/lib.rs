//! What the tests of this workspace share: generated [traces], [queries](queries()) with one answer, the [stores] that they are about, [processes] of
//! a cluster, and a simulated [fleet]. Not published.

mod answers;
pub mod fleet;
pub mod processes;
mod queries;
pub mod stores;
pub mod traces;

pub use answers::{Rows, assert_equal};
pub use queries::{Query, queries};

//! Named points at which a test can kill the process, to check what it leaves behind.
//!
//! The code has points of the form `failpoint!(Name, instance)`, where `instance` belongs to the stream in use. With the feature
//! `failpoints` each point checks whether it is armed; without it the macro expands to nothing, including its arguments.
//!
//! The feature is for crash tests. A program built with it behaves the same, but more slowly, until a test [arms](arm) a point.

#[cfg(feature = "failpoints")]
macro_rules! failpoint {
    ($point:ident, $instance:expr) => {
        $crate::channel::failpoint::Point::$point.pass($instance)
    };
}

#[cfg(not(feature = "failpoints"))]
macro_rules! failpoint {
    ($point:ident, $instance:expr) => {};
}

// The paths are explicit because the models include this file by path.
#[cfg(feature = "failpoints")]
#[path = "failpoint/armed.rs"]
mod armed;
#[cfg(feature = "failpoints")]
#[path = "failpoint/point.rs"]
mod point;

#[cfg(feature = "failpoints")]
pub use armed::{Action, arm, watch};
#[cfg(feature = "failpoints")]
pub use point::Point;

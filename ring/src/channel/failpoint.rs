//! Named points at which a process can be made to die, to show what it leaves there.
//!
//! A point stands in the code that is shipped, as `failpoint!(Name, instance)`, where `instance` is that of the stream which is worked
//! on. With the feature `failpoints` it is looked up whether the point is armed; without it the macro expands to nothing, its
//! arguments included.
//!
//! The feature is for tests of crash resistance. A program that is built with it does what it does otherwise, slower, until somebody
//! [arms](arm) a point.

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

// The paths are spelt out because the models include this file by path.
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

//! LTTng-UST in a build without it: a row that says so.

use crate::kernel::Compiled;
use crate::peer::none::None;
use crate::variant::{Arm, Hold, Mode, Proof, Unusable, Variant};

const ABSENT: Arm = || Err(Unusable("built without the feature `lttng`".into()));

/// What cannot be measured.
pub const VARIANTS: &[Variant] = &[Variant {
    name: "lttng",
    mode: Mode::Off,
    does: "LTTng-UST: a load and a branch",
    kernels: Compiled::of::<None>(),
    arm: ABSENT,
    count: ABSENT,
    proof: Proof::Values,
    tells: false,
    hold: Hold::Sample,
    limit: u64::MAX,
}];

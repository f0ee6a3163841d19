//! The rows of LTTng-UST in a build without it.

use crate::kernel::Compiled;
use crate::peer::none::None;
use crate::variant::{Arm, Hold, Mode, Proof, Unusable, Variant};

const ABSENT: Arm = || Err(Unusable("built without the feature `lttng`".into()));

const ABSENT_VARIANT: Variant = Variant {
    name: "lttng",
    mode: Mode::Off,
    does: "LTTng-UST: a load and a branch",
    kernels: Compiled::of::<None>(),
    arm: ABSENT,
    count: ABSENT,
    proof: Proof::Values,
    counts_losses: false,
    hold: Hold::Sample,
    limit: u64::MAX,
    recording: Option::None,
};

/// The variants that cannot be measured.
pub const VARIANTS: &[Variant] = &[
    ABSENT_VARIANT,
    Variant {
        name: "lttng-snapshot",
        mode: Mode::Recorded,
        does: "LTTng-UST into a flight recorder",
        ..ABSENT_VARIANT
    },
    Variant { name: "lttng-discard", mode: Mode::Recorded, does: "LTTng-UST into a CTF trace", ..ABSENT_VARIANT },
];

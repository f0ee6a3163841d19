//! The boot id of this machine, which changes with each boot.

use std::sync::OnceLock;

/// The boot id; `None` if it is unknown. It is read once and cached, so it stays available if `/proc` becomes inaccessible.
pub fn boot_id() -> Option<[u8; 16]> {
    static KNOWN: OnceLock<[u8; 16]> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return Some(*known);
    }
    let text = fileguard::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().replace('-', "");
    let boot = u128::from_str_radix(&text, 16).ok()?;
    Some(*KNOWN.get_or_init(|| boot.to_be_bytes()))
}

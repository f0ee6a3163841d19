//! The source location of a declaration.

/// The source location of a declaration and the crate that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The package, as in its `Cargo.toml`; the crate's name if it was not built by cargo.
    pub package: &'static str,
    /// The package's version; empty if it was not built by cargo.
    pub version: &'static str,
    /// The path of the module.
    pub module: &'static str,
    /// The source file, as passed to the compiler.
    pub file: &'static str,
    /// The line, from one.
    pub line: u32,
}

/// The name of the crate: the part of `module_path!()` before the first `::`.
///
/// # Panics
///
/// If the name is not ASCII. The macros evaluate this at compile time, where the panic is a compile error.
pub const fn crate_name(module: &'static str) -> &'static str {
    let bytes = module.as_bytes();
    let mut end = 0;
    while end < bytes.len() && bytes[end] != b':' {
        assert!(bytes[end].is_ascii(), "CTF cannot carry the crate's name: give the block a `provider`");
        end += 1;
    }
    module.split_at(end).0
}

#!/usr/bin/env bash
# The compiler of a workspace's members that lints while it compiles; a warning is an error. For RUSTC_WORKSPACE_WRAPPER: `cargo clippy` would
# compile all dependencies once more, without code.
exec clippy-driver "$@" -D warnings

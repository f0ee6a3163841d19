//! Any bytes as a `session.toml`: a session that was read is equal after it was written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_session_spec::SessionSpec;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(spec) = SessionSpec::parse(bytes) {
        assert_eq!(SessionSpec::parse(spec.to_toml().unwrap().as_bytes()).unwrap(), spec);
    }
});

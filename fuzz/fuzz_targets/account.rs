//! Any bytes as an account: an account that was read is equal after it was written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::account::Account;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(account) = Account::parse(bytes) {
        for event in account.channels.iter().flat_map(|channel| &channel.events) {
            let _ = event.total_lost();
        }
        assert_eq!(Account::parse(&account.to_json()).unwrap(), account);
    }
});

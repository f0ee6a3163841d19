//! Any bytes from the notification socket, in fragments whose size is in the first byte: the messages equal those of the unfragmented
//! bytes, and a decoded message is equal after it was written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_session_io::trigger::{Decoder, Message, PayloadTooLong};

fn decode(bytes: &[u8], part: usize) -> (Vec<Message>, Option<PayloadTooLong>) {
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    for mut input in bytes.chunks(part) {
        loop {
            match decoder.next(&mut input) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
        assert!(input.is_empty());
    }
    (messages, None)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((part, bytes)) = bytes.split_first() else { return };
    let whole = decode(bytes, usize::MAX);
    assert_eq!(decode(bytes, usize::from(*part).max(1)), whole);
    for message in whole.0 {
        let core = match message {
            Message::CoreDump(core) => core,
            Message::Fire(request) => {
                // JSON may take more space than the input.
                let Some(bytes) = request.to_message() else { continue };
                assert_eq!(decode(&bytes, usize::MAX).0, [Message::Fire(request)]);
                continue;
            }
            Message::Notification(notification) => {
                let (again, _) = decode(&notification.to_message(), usize::MAX);
                let [Message::Notification(read)] = &again[..] else { panic!("{again:?}") };
                let is_short = read.occurrence.entries.is_empty() && read.actions.is_empty();
                assert!(*read == notification || is_short, "{read:?}");
                continue;
            }
            _ => continue,
        };
        let (again, _) = decode(&core.to_message(), usize::MAX);
        let [Message::CoreDump(read)] = &again[..] else { panic!("{again:?}") };
        // Without a NUL a name has 255 bytes, of which 254 are written.
        assert_eq!(
            (read.pid, read.uid, read.gid, read.signal, read.time),
            (core.pid, core.uid, core.gid, core.signal, core.time)
        );
        for (read, written) in [(&read.executable, &core.executable), (&read.host, &core.host)] {
            let most = written.len().min(254);
            assert_eq!(read.as_encoded_bytes(), &written.as_encoded_bytes()[..most]);
        }
    }
});

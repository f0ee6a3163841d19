//! Metadata that is not a trace's, or is of another version.

use crate::hand::{PREAMBLE, one_event};
use tracepoint_reader::Metadata;

fn refusal(bytes: &[u8]) -> String {
    Metadata::parse(bytes).unwrap_err().to_string()
}

#[test]
fn metadata_that_declares_nothing_is_an_error() {
    for text in ["", "\n \n", "/* CTF 1.8 */", "/* CTF 1.8 */ trace { major = 1; minor = 8; };", "env { a = 1; };"] {
        let reason = refusal(text.as_bytes());
        assert!(
            reason
                .ends_with("it declares nothing: the tracer was killed before it wrote it, or has not written it yet"),
            "{reason}"
        );
    }
    // A packet without a text.
    let mut packet = [0; 37];
    packet[..4].copy_from_slice(&0x75D1_1D57u32.to_le_bytes());
    packet[24..28].copy_from_slice(&(37u32 * 8).to_le_bytes());
    packet[28..32].copy_from_slice(&(37u32 * 8).to_le_bytes());
    packet[35..].copy_from_slice(&[1, 8]);
    assert!(refusal(&packet).contains("it declares nothing"));
    packet[35..].copy_from_slice(&[2, 0]);
    assert!(refusal(&packet).contains("this is CTF 2"));
    assert!(Metadata::parse(PREAMBLE.as_bytes()).is_ok(), "no stream yet");
}

#[test]
fn ctf_2_is_named() {
    let preamble = r#"{"type":"preamble","version":2}"#;
    for text in [preamble.to_owned(), format!("\u{1e}{preamble}\n"), format!("\n\u{1e}{preamble}\n\u{1e}{{}}")] {
        let reason = refusal(text.as_bytes());
        assert!(reason.contains("this is CTF 2, and CTF 1.8 is what is understood; convert the trace"), "{reason}");
    }
}

#[test]
fn character_literals_are_strings() {
    let metadata = one_event("u8 a;").replace("\"ust\"", "'u\\'s\\n'");
    let metadata = Metadata::parse(metadata.as_bytes()).unwrap();
    let expected = tracepoint_reader::metadata::EnvValue::String("u's\n".to_owned());
    assert_eq!(metadata.env_value("domain"), Some(&expected));
}

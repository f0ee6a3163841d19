//! Notices in the file of an acknowledgement: a list of texts, `notices`, and a list of their kinds, `notice_kinds`. A controller prints
//! the texts, so it need not know the kinds of the agent's version.

use super::Notice;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct InAck {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    /// One for each notice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notice_kinds: Vec<String>,
}

pub(crate) fn serialize<S: Serializer>(notices: &[Notice], serializer: S) -> Result<S::Ok, S::Error> {
    let texts = notices.iter().map(ToString::to_string).collect();
    let kinds = notices.iter().map(|notice| notice.kind().to_owned()).collect();
    InAck { notices: texts, notice_kinds: kinds }.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Notice>, D::Error> {
    let InAck { notices, notice_kinds } = InAck::deserialize(deserializer)?;
    let kinds = notice_kinds.into_iter().chain(std::iter::repeat(String::new()));
    Ok(notices.into_iter().zip(kinds).map(|(text, kind)| Notice::Reported { kind, text }).collect())
}

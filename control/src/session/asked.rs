//! The rules of a session as they were asked for, and the channels that they name.

use super::{RoutedRule, SessionError};
use crate::rule::{BadRule, NameRule};

/// A rule as it was given, and the name of its channel if one was.
#[derive(Debug)]
pub(super) struct AskedRule {
    pub(super) text: String,
    pub(super) channel: Option<String>,
}

/// The rules, for a session whose channels are called so, the default one first.
pub(super) fn route(rules: &[AskedRule], names: &[&str]) -> Result<Vec<RoutedRule>, SessionError> {
    if let Some(twice) = (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        return Err(SessionError::SameChannel { name: names[twice].to_owned() });
    }
    let class = |channel: &String| {
        let place = (0..).zip(names).find(|(_, name)| *name == channel).map(|(class, _)| class);
        place.ok_or_else(|| SessionError::NoChannel { name: channel.clone(), known: names.join(", ") })
    };
    let routed = |AskedRule { text, channel }: &AskedRule| {
        let name =
            NameRule::parse(text).map_err(|BadRule { text, reason }| SessionError::Rule { rule: text, reason })?;
        Ok(RoutedRule { name, channel: channel.as_ref().map(class).transpose()? })
    };
    rules.iter().map(routed).collect()
}

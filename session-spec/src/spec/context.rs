//! The names of contexts in a session's file.

use tracepoint_core::context::Context;

/// The contexts of a channel, by name; see [`Context`].
const CONTEXTS: [(&str, Context); 6] = [
    ("process", Context::Process),
    ("thread", Context::Thread),
    ("thread_name", Context::ThreadName),
    ("cpu", Context::Cpu),
    ("user", Context::User),
    ("call_stack", Context::CallStack),
];

/// The name of this context.
pub(super) fn name(context: Context) -> &'static str {
    CONTEXTS.iter().find(|(_, known)| *known == context).map_or("", |(name, _)| name)
}

/// There is no context of this name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown context `{0}`; there are {known}", known = CONTEXTS.map(|(name, _)| name).join(", "))]
pub(super) struct UnknownContext(String);

/// The context of this name.
pub(super) fn find(name: &str) -> Result<Context, UnknownContext> {
    let found = CONTEXTS.iter().find(|(known, _)| *known == name).map(|(_, context)| *context);
    found.ok_or_else(|| UnknownContext(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_contexts_have_a_name() {
        assert_eq!(CONTEXTS.map(|(_, context)| context), Context::ALL);
        for (name, context) in CONTEXTS {
            assert_eq!(find(name), Ok(context));
        }
        assert!(find("weather").is_err_and(|error| error.to_string().contains("there are process, thread,")));
    }
}

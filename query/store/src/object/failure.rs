//! Translates failed requests into messages with a remedy.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use object_store::Error;

/// Returns whether the bucket itself is missing, rather than an object in it.
pub(super) fn is_of_bucket(error: &(dyn StdError + 'static)) -> bool {
    error.to_string().contains("NoSuchBucket")
}

/// The error with its remedy.
pub(super) fn described(error: &Error) -> io::Error {
    let text = error.to_string();
    let text = text.trim();
    let (kind, text) = if is_of_bucket(error) {
        (ErrorKind::NotFound, "there is no such bucket: create it, or name another one".to_owned())
    } else if text.contains("/latest/api/token") || text.contains("/latest/meta-data") {
        let mend = "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
        (ErrorKind::PermissionDenied, mend.to_owned())
    } else {
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                let mend = "access denied: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be those of a user who may list the \
                            bucket, and get, put and delete objects";
                (ErrorKind::PermissionDenied, format!("{mend} ({})", code(text)))
            }
            Error::NotFound { .. } => (ErrorKind::NotFound, "there is no such object".to_owned()),
            _ if text.contains("error sending request") || text.contains("Connect") => {
                let mend = "the service cannot be reached: check the network, AWS_ENDPOINT and AWS_REGION";
                (ErrorKind::NotConnected, format!("{mend} ({text})"))
            }
            _ => (ErrorKind::Other, text.to_owned()),
        }
    };
    io::Error::new(kind, text)
}

/// The code in a response of S3, such as `AccessDenied`.
fn code(text: &str) -> &str {
    let code = text.split_once("<Code>").and_then(|(_, rest)| Some(rest.split_once("</Code>")?.0));
    code.unwrap_or(text)
}

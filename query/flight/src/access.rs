//! Access control: clients must send the token, if there is one.

use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use subtle::ConstantTimeEq;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// Accepts input without padding, which some clients omit.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret that clients send: as `authorization: Bearer TOKEN`, or as the password of any user.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A token with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Refuses requests without the token.
#[derive(Clone, Debug)]
pub(crate) struct Access(pub(crate) Option<Token>);

impl Interceptor for Access {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = &self.0 else { return Ok(request) };
        match given(request.metadata()) {
            Some(text) if token.is(&text) => Ok(request),
            Some(_) => Err(Status::unauthenticated("the token is not that of the server")),
            None => Err(Status::unauthenticated(
                "the server wants its token: as `authorization: Bearer TOKEN`, or as the password of any user",
            )),
        }
    }
}

/// The token in the metadata of a request.
pub(crate) fn given(metadata: &MetadataMap) -> Option<String> {
    let (kind, value) = metadata.get("authorization")?.to_str().ok()?.split_once(' ')?;
    if kind.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    let both = String::from_utf8(BASE64.decode(value.trim()).ok()?).ok()?;
    let (_, password) = both.split_once(':')?;
    kind.eq_ignore_ascii_case("basic").then(|| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(token: Option<&str>, header: Option<&str>) -> Result<(), tonic::Code> {
        let mut request = Request::new(());
        if let Some(header) = header {
            request.metadata_mut().insert("authorization", header.parse().expect("a header"));
        }
        let mut access = Access(token.map(Token::new));
        access.call(request).map(|_| ()).map_err(|status| status.code())
    }

    #[test]
    fn who_has_the_token_may_query() {
        assert_eq!(code(None, None), Ok(()));
        assert_eq!(code(Some("a:b"), Some("Bearer a:b")), Ok(()));
        let basic = format!("Basic {}", BASE64.encode("anybody:a:b"));
        assert!(basic.ends_with('='));
        for basic in [basic.as_str(), basic.trim_end_matches('=')] {
            assert_eq!(code(Some("a:b"), Some(basic)), Ok(()));
        }
        for wrong in [None, Some("Bearer a"), Some("Bearer"), Some("Basic !"), Some("a:b")] {
            assert_eq!(code(Some("a:b"), wrong), Err(tonic::Code::Unauthenticated), "{wrong:?}");
        }
    }
}

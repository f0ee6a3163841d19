//! Addresses of schedulers and executors.

use crate::error::ClusterError;

/// Splits `HOST:PORT` into host and port. An IPv6 address must be in brackets.
pub(crate) fn split(address: &str) -> Result<(String, u16), ClusterError> {
    let invalid = |reason: &str| ClusterError::Address(address.to_owned(), reason.to_owned());
    let (host, port) = address.rsplit_once(':').ok_or_else(|| invalid("it has no port"))?;
    let port = port.parse().map_err(|_| invalid("its port is no number below 65536"))?;
    if host.is_empty() || host.contains('/') {
        return Err(invalid("it has no host"));
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        assert_eq!(split("a.example:50050").expect("valid"), ("a.example".to_owned(), 50050));
        assert_eq!(split("[::1]:1").expect("valid"), ("[::1]".to_owned(), 1));
        for (address, reason) in [("a", "no port"), ("a:x", "no number"), (":1", "no host"), ("http://a:1", "no host")]
        {
            let error = split(address).expect_err("not valid").to_string();
            assert!(error.contains(reason) && error.contains("HOST:PORT"), "{error}");
        }
    }
}

//! The UDP server of a session's description.

use std::io::ErrorKind;
use std::time::Duration;
use tracepoint_session_spec::{DropPolicy as SpecifiedDrops, UdpSinkSpec};
use tracepoint_sinks::SinkError;
use tracepoint_sinks::udp::{DEFAULT_PORT, DropPolicy, UdpOptions, UdpSink};

/// Time for which it continues to serve its client after the session ends.
const FLUSH: Duration = Duration::from_secs(2);

/// Binds the server. Without a port in the description, it uses the default port, or a free one if another process uses the default.
pub(super) fn server(spec: &UdpSinkSpec) -> Result<UdpSink, SinkError> {
    let address = spec.socket_address();
    if spec.port.is_none() {
        match UdpSink::bind(options(spec).address((address.ip(), DEFAULT_PORT).into())) {
            Err(error) if error.io_error().kind() == ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
    UdpSink::bind(options(spec).address(address))
}

fn options(spec: &UdpSinkSpec) -> UdpOptions {
    let drops = match spec.drop.unwrap_or_default() {
        SpecifiedDrops::Oldest => DropPolicy::Oldest,
        SpecifiedDrops::Newest => DropPolicy::Newest,
    };
    let mut options = UdpOptions::default().drops(drops).flush(FLUSH);
    if let Some(limit) = spec.limit {
        options = options.limit(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    if let Some(rate) = spec.rate {
        options = options.rate(rate).legacy_rate(rate).allowed_rate(rate);
    }
    if let Some(pace) = spec.pace {
        options = options.legacy_pace(pace);
    }
    spec.allow.iter().fold(options, |options, address| options.allow(*address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_session_spec::SinkSpec;

    #[test]
    fn without_a_port_the_first_server_has_the_default_one() {
        let mut spec = SinkSpec::udp(([127, 0, 0, 77], 0).into());
        spec.port = None;
        let servers = [(); 2].map(|()| server(&spec).expect("a port"));
        let [first, second] = servers.each_ref().map(|server| server.address().port());
        assert!(first == DEFAULT_PORT && second != DEFAULT_PORT, "{first}, {second}");
        spec.port = Some(DEFAULT_PORT);
        let error = server(&spec).expect_err("the port is taken");
        assert!(error.to_string().contains("another program listens there"), "{error}");
    }

    #[test]
    fn allowed_addresses_and_rates_are_those_of_the_description() {
        let mut spec = SinkSpec::udp(([127, 0, 0, 1], 0).into());
        (spec.allow, spec.rate, spec.pace) = (vec![[192, 0, 2, 7].into()], Some(12345), Some(77));
        let options = format!("{:?}", options(&spec));
        for part in [
            "allowed: [192.0.2.7]",
            "rate: Some(12345)",
            "legacy_rate: 12345",
            "allowed_rate: 12345",
            "legacy_pace: 77",
        ] {
            assert!(options.contains(part), "{part} in {options}");
        }
    }
}

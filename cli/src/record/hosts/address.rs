//! The address at which hosts reach the collector of this command.

use crate::argument_error::ArgumentError;
use crate::failure::Failure;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// The port is irrelevant, because nothing is sent.
const DISCARD: u16 = 9;

/// `--collect-at`: an address and the port for control connections; data connections use the next port.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollectAt {
    pub(super) ip: IpAddr,
    port: Option<u16>,
}

/// Parses `10.0.0.1`, `10.0.0.1:7000`, `[fd00::1]:7000`.
pub(super) fn collect_at(text: &str) -> Result<CollectAt, ArgumentError> {
    let with_port = text.parse().ok().map(|at: SocketAddr| CollectAt { ip: at.ip(), port: Some(at.port()) });
    let address = || text.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let at = with_port.or_else(|| address().map(|ip| CollectAt { ip, port: None }));
    let at = at.ok_or("expected an address of this machine, optionally with a port, for example `10.0.0.1:7000`")?;
    if at.ip.is_unspecified() {
        return Err("expected the address at which the hosts reach this machine".into());
    }
    if at.port == Some(u16::MAX) {
        return Err("the port for data is the one behind this, and 65535 has none".into());
    }
    Ok(at)
}

impl CollectAt {
    /// Where to listen for control connections and for data.
    pub(super) fn listen(self) -> [SocketAddr; 2] {
        // Two free ports, or two consecutive given ones, so that a firewall can open them.
        let data = self.port.map_or(0, |port| port + 1);
        [self.port.unwrap_or(0), data].map(|port| SocketAddr::new(self.ip, port))
    }
}

/// The address at which a host reaches this machine: the one reported by its sshd if it belongs to this machine, otherwise the source address of a
/// route to the host.
pub(super) fn address_for(host: &str, seen_as: Option<IpAddr>) -> Result<IpAddr, Failure> {
    let is_ours = |ip: &IpAddr| UdpSocket::bind((*ip, 0)).is_ok();
    seen_as.filter(is_ours).or_else(|| from_route(host)).ok_or_else(|| {
        Failure::Refused(format!(
            "it is not known at which address {host} reaches this machine; give one with `--collect-at ADDR`"
        ))
    })
}

fn from_route(host: &str) -> Option<IpAddr> {
    let name = host.rsplit('@').next()?;
    (name, DISCARD).to_socket_addrs().ok()?.find_map(|there| {
        let any = if there.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        // Selects the route; sends nothing.
        socket.connect(there).ok()?;
        Some(socket.local_addr().ok()?.ip())
    })
}

/// The address to listen on for hosts that reach this machine at these addresses: the address if there is only one, otherwise all addresses of this
/// machine.
pub(super) fn common(addresses: &[IpAddr]) -> IpAddr {
    let mut distinct = addresses.to_vec();
    distinct.dedup();
    match distinct[..] {
        [one] => one,
        _ if addresses.iter().all(IpAddr::is_ipv4) => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ports_are_parsed() {
        let listen = |text| collect_at(text).map(|at| at.listen().map(|it| it.to_string()).join(" "));
        assert_eq!(listen("10.0.0.1"), Ok("10.0.0.1:0 10.0.0.1:0".to_owned()));
        assert_eq!(listen("10.0.0.1:7000"), Ok("10.0.0.1:7000 10.0.0.1:7001".to_owned()));
        assert_eq!(listen("[::1]:7000"), Ok("[::1]:7000 [::1]:7001".to_owned()));
        assert_eq!(listen("::1"), Ok("[::1]:0 [::1]:0".to_owned()));
        for wrong in ["", "name", "0.0.0.0", "10.0.0.1:65535", "10.0.0.1:x"] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_route_tells_the_address() -> Result<(), Failure> {
        let own: IpAddr = Ipv4Addr::LOCALHOST.into();
        assert_eq!(address_for("user@127.0.0.1", None)?, own);
        // An address of another machine, as with NAT.
        assert_eq!(address_for("127.0.0.1", Some(Ipv4Addr::new(192, 0, 2, 1).into()))?, own);
        assert_eq!(address_for("x.invalid", Some(own))?, own);
        assert!(address_for("x.invalid", None).is_err_and(|error| error.to_string().contains("--collect-at")));
        Ok(())
    }

    #[test]
    fn one_address_is_listened_at_if_there_is_only_one() {
        let [a, b] = [1, 2].map(|end| IpAddr::from([10, 0, 0, end]));
        assert_eq!(common(&[a, a]), a);
        assert_eq!(common(&[a, b]), IpAddr::from([0, 0, 0, 0]));
        assert_eq!(common(&[a, Ipv6Addr::LOCALHOST.into()]), IpAddr::from(Ipv6Addr::UNSPECIFIED));
    }
}

//! Address validation: determines which addresses are trusted, or have proved by a token that they receive datagrams sent to them.
//!
//! A forged address costs no memory: nonces and tokens are keyed hashes of the address and the time. The number of bytes received from an address
//! limits the bytes sent to it before it is validated; these counts are kept in a table of fixed size. So are the hosts whose sessions ended
//! without an acknowledgement: their next sessions give way to other clients at once.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Minimum validity of a nonce or a token; the maximum is twice that.
const PERIOD: Duration = Duration::from_secs(10);
/// Size of the tables of received bytes and of silent hosts.
const CREDITS: usize = 256;
/// Number of places in `silent` at which a host may be: others with the same hash displace it when all are taken, the oldest one first.
const WAYS: usize = 8;
/// Time for which a host counts as silent.
const SILENT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct AddressValidator {
    trusts_loopback: bool,
    allowed: Vec<IpAddr>,
    keys: [RandomState; 2],
    begun: Instant,
    drawn: u64,
    credits: Box<[Option<(SocketAddr, usize)>; CREDITS]>,
    /// Hosts that took a session and acknowledged nothing, and when.
    silent: Box<[Option<(IpAddr, Instant)>; CREDITS]>,
}

impl AddressValidator {
    pub(super) fn new(trusts_loopback: bool, allowed: Vec<IpAddr>, now: Instant) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        let (credits, silent) = (Box::new([None; CREDITS]), Box::new([None; CREDITS]));
        Self { trusts_loopback, allowed, keys, begun: now, drawn: 0, credits, silent }
    }

    /// Returns whether the address is a loopback address.
    pub(super) fn is_local(address: SocketAddr) -> bool {
        address.ip().to_canonical().is_loopback()
    }

    /// Returns whether the address need not be validated.
    pub(super) fn is_trusted(&self, address: SocketAddr) -> bool {
        (self.trusts_loopback && Self::is_local(address)) || self.allowed.contains(&address.ip().to_canonical())
    }

    /// Returns an unpredictable random number other than 0.
    pub(super) fn draw(&mut self) -> u32 {
        self.drawn += 1;
        let number = self.keys[0].hash_one(("drawn", self.drawn));
        u32::try_from(number >> 32).unwrap_or(1).max(1)
    }

    /// Returns the nonce of an offer to `address`.
    pub(super) fn nonce(&self, address: SocketAddr, now: Instant) -> u16 {
        self.nonce_of(address, self.period(now))
    }

    pub(super) fn is_nonce(&self, address: SocketAddr, nonce: u16, now: Instant) -> bool {
        let period = self.period(now);
        nonce == self.nonce_of(address, period) || nonce == self.nonce_of(address, period.wrapping_sub(1))
    }

    /// Returns a token that is sent only to `address`.
    pub(super) fn token(&self, address: SocketAddr, now: Instant) -> [u8; 16] {
        self.token_of(address, self.period(now))
    }

    pub(super) fn is_token(&self, address: SocketAddr, token: [u8; 16], now: Instant) -> bool {
        let period = self.period(now);
        token == self.token_of(address, period) || token == self.token_of(address, period.wrapping_sub(1))
    }

    /// Adds bytes received from `address`. Returns whether `wanted` bytes may be sent to it, which requires as many received ones: so a forged
    /// address is never sent more than its forger has sent.
    pub(super) fn credit(&mut self, address: SocketAddr, bytes: usize, wanted: usize) -> bool {
        let place = (self.keys[1].hash_one(address) % CREDITS as u64) as usize;
        let received = self.credits[place].filter(|(owner, _)| *owner == address).map_or(0, |(_, bytes)| bytes) + bytes;
        let suffices = received >= wanted;
        self.credits[place] = (!suffices).then_some((address, received));
        suffices
    }

    /// Records whether the client at `address` has acknowledged anything in the session that ends now.
    pub(super) fn session_ended(&mut self, address: SocketAddr, acknowledged: bool, now: Instant) {
        let (host, places) = self.silent_places(address);
        let places = &mut self.silent[places];
        if let Some(known) = places.iter_mut().find(|place| place.is_some_and(|(silent, _)| silent == host)) {
            *known = (!acknowledged).then_some((host, now));
        } else if let (false, Some(oldest)) =
            (acknowledged, places.iter_mut().min_by_key(|place| place.map(|(_, since)| since)))
        {
            *oldest = Some((host, now));
        }
    }

    /// Returns whether a session with this host has recently ended without an acknowledgement.
    pub(super) fn is_silent(&self, address: SocketAddr, now: Instant) -> bool {
        let (host, places) = self.silent_places(address);
        let is_it = |(silent, since)| silent == host && now.saturating_duration_since(since) < SILENT;
        self.silent[places].iter().flatten().copied().any(is_it)
    }

    /// Returns the host, and its places in the table `silent`.
    fn silent_places(&self, address: SocketAddr) -> (IpAddr, Range<usize>) {
        let (host, place) = self.host(address);
        let first = place / WAYS * WAYS;
        (host, first..first + WAYS)
    }

    /// Returns the host, without the port, and its place in the table. One host may use all addresses of an IPv6 /64 network.
    fn host(&self, address: SocketAddr) -> (IpAddr, usize) {
        let host = match address.ip().to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
            v4 @ IpAddr::V4(_) => v4,
        };
        (host, (self.keys[1].hash_one(host) % CREDITS as u64) as usize)
    }

    fn period(&self, now: Instant) -> u64 {
        // Starts at 1, so that the first period has a predecessor.
        1 + now.saturating_duration_since(self.begun).as_secs() / PERIOD.as_secs()
    }

    fn nonce_of(&self, address: SocketAddr, period: u64) -> u16 {
        (self.keys[0].hash_one(("nonce", address, period)) >> 48) as u16
    }

    fn token_of(&self, address: SocketAddr, period: u64) -> [u8; 16] {
        let mut token = [0; 16];
        for (key, half) in self.keys.iter().zip(token.chunks_exact_mut(8)) {
            half.copy_from_slice(&key.hash_one(("token", address, period)).to_be_bytes());
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn a_host_is_silent_for_a_while_whatever_its_port() {
        let begin = Instant::now();
        let mut validator = AddressValidator::new(true, Vec::new(), begin);
        validator.session_ended(address(1), false, begin);
        assert!(validator.is_silent(address(2), begin) && !validator.is_silent(address(2), begin + SILENT));
        validator.session_ended(address(3), true, begin);
        assert!(!validator.is_silent(address(1), begin));
        let [one, same, other] =
            ["[2001:db8::1]:1", "[2001:db8::2]:2", "[2001:db8:0:1::1]:1"].map(|address| address.parse().unwrap());
        validator.session_ended(one, false, begin);
        assert!(validator.is_silent(same, begin) && !validator.is_silent(other, begin));
    }

    #[test]
    fn silent_hosts_do_not_displace_each_other() {
        let hosts = [1, 2, 3].map(|host| SocketAddr::from(([192, 0, 2, host], 1)));
        // The keys of the hashes are random: some of these validators have two of the hosts in the same place.
        for _ in 0..1000 {
            let begin = Instant::now();
            let mut validator = AddressValidator::new(true, Vec::new(), begin);
            for host in &hosts {
                validator.session_ended(*host, false, begin);
            }
            assert!(hosts.iter().all(|host| validator.is_silent(*host, begin)));
        }
    }

    #[test]
    fn a_token_is_valid_for_its_address_and_time_only() {
        let begin = Instant::now();
        let validator = AddressValidator::new(true, Vec::new(), begin);
        let token = validator.token(address(1), begin);
        assert!(validator.is_token(address(1), token, begin + Duration::from_secs(15)));
        assert!(!validator.is_token(address(1), token, begin + Duration::from_secs(20)));
        assert!(!validator.is_token(address(2), token, begin));
        assert!(!validator.is_token(address(1), [0; 16], begin));
        assert!(!AddressValidator::new(true, Vec::new(), begin).is_token(address(1), token, begin), "keys differ");
    }

    #[test]
    fn an_unvalidated_address_gets_no_more_than_it_has_sent() {
        let mut validator = AddressValidator::new(true, Vec::new(), Instant::now());
        for _ in 0..3 {
            let paid: Vec<_> = (0..9).map(|_| validator.credit(address(1), 1, 9)).collect();
            assert_eq!(paid, [false, false, false, false, false, false, false, false, true]);
        }
    }

    #[test]
    fn loopback_and_allowed_addresses_are_trusted() {
        let validator = AddressValidator::new(true, vec![IpAddr::from([192, 0, 2, 1])], Instant::now());
        for (text, trusted) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("192.0.2.1:9", true),
            ("[::ffff:192.0.2.1]:9", true),
            ("192.0.2.2:9", false),
            ("[fe80::1]:9", false),
        ] {
            assert_eq!(validator.is_trusted(text.parse().expect("an address")), trusted, "{text}");
        }
    }
}

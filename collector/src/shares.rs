//! Fair shares of limited resources for addresses and senders.
//!
//! An address may use as much as it leaves free for other addresses, and a sender as much as it leaves free for other senders of its address. So one
//! address has at most half of all, the next one half of the rest, and so on: a sender from another address always finds room. A sender has at most
//! half of its address's share. Released amounts are available at once.
//!
//! A replacement, such as the next file of a stream, coexists with its predecessor for a while. If that exceeds the share, the excess is a loan: each
//! share has one loan at most, and all loans together never exceed the amount that is still free.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The network location of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// A host. For IPv6 this is the /64 network, because one host may use all addresses of it.
    Host(IpAddr),
    /// A broker, which authenticates its clients itself.
    #[cfg(feature = "nats")]
    Broker,
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(address @ IpAddr::V4(_)) => address.fmt(f),
            Self::Host(network) => write!(f, "{network}/64"),
            #[cfg(feature = "nats")]
            Self::Broker => f.write_str("the broker"),
        }
    }
}

/// The holder of a share: an address, and optionally a sender there, by the number of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Holder {
    pub(crate) address: Address,
    pub(crate) sender: Option<u64>,
}

impl Holder {
    /// The address as a whole.
    pub(crate) const fn address(address: Address) -> Self {
        Self { address, sender: None }
    }
}

/// A limited resource. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Shares(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    most: usize,
    used: usize,
    /// The amount on loan, part of `used`.
    lent: usize,
    /// The amount held by each address and by each sender.
    holders: HashMap<Holder, usize>,
}

impl State {
    fn has(&self, holder: Holder) -> usize {
        self.holders.get(&holder).copied().unwrap_or_default()
    }

    /// Returns whether `count` more fit. `more` is the amount that others would release, in addition to what is free.
    fn fits(&self, holder: Holder, count: usize, more: usize) -> bool {
        let free = self.most.saturating_sub(self.used) + more;
        let address = self.has(Holder::address(holder.address)) + count;
        // The amount that the address could still have after this.
        let Some(left) = free.checked_sub(count).and_then(|free| free.checked_sub(address)) else { return false };
        holder.sender.is_none() || self.has(holder) + count <= left / 2
    }

    fn add(&mut self, holder: Holder, count: usize) {
        self.used += count;
        *self.holders.entry(Holder::address(holder.address)).or_default() += count;
        if holder.sender.is_some() {
            *self.holders.entry(holder).or_default() += count;
        }
    }

    fn give_back(&mut self, holder: Holder, count: usize) {
        self.used -= count;
        let address = Some(Holder::address(holder.address)).filter(|_| holder.sender.is_some());
        for holder in [Some(holder), address].into_iter().flatten() {
            if let Some(has) = self.holders.get_mut(&holder) {
                *has -= count;
                if *has == 0 {
                    self.holders.remove(&holder);
                }
            }
        }
    }
}

impl Shares {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(State { most, used: 0, lent: 0, holders: HashMap::new() })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn most(&self) -> usize {
        self.state().most
    }

    pub(crate) fn used(&self) -> usize {
        self.state().used
    }

    /// Returns whether a holder may have `count` more.
    pub(crate) fn fits(&self, holder: Holder, count: usize) -> bool {
        self.state().fits(holder, count, 0)
    }

    /// Like [`fits`](Self::fits), if other holders released `given_up`.
    pub(crate) fn would_fit(&self, holder: Holder, count: usize, given_up: usize) -> bool {
        self.state().fits(holder, count, given_up)
    }

    /// Takes `count` for a holder, if it may have that.
    pub(crate) fn take(&self, holder: Holder, count: usize) -> Option<Share> {
        let mut state = self.state();
        state.fits(holder, count, 0).then(|| {
            state.add(holder, count);
            Share::new(self, holder, count)
        })
    }
}

/// The amount a holder has; dropping it releases it.
#[derive(Debug)]
pub(crate) struct Share {
    of: Shares,
    holder: Holder,
    count: usize,
    /// The loan for its successor.
    loan: OnceLock<Loan>,
}

/// An amount on loan, until it is dropped.
#[derive(Debug)]
struct Loan {
    of: Shares,
    count: usize,
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.of.state().lent -= self.count;
    }
}

impl Share {
    fn new(of: &Shares, holder: Holder, count: usize) -> Self {
        Self { of: of.clone(), holder, count, loan: OnceLock::new() }
    }

    /// Takes a second share of the same size for the same holder, if it may have that.
    pub(crate) fn another(&self) -> Option<Self> {
        self.of.take(self.holder, self.count)
    }

    /// Takes a share to replace this one, even beyond the holder's limit: the excess is on loan until this share is dropped. `None` if this share
    /// already has a successor, or if too much is on loan.
    pub(crate) fn successor(&self) -> Option<Self> {
        let mut state = self.of.state();
        let free = state.most.saturating_sub(state.used).checked_sub(self.count)?;
        let lent = state.lent + self.count;
        if lent > free || self.loan.get().is_some() {
            return None;
        }
        self.loan.get_or_init(|| Loan { of: self.of.clone(), count: self.count });
        state.lent = lent;
        state.add(self.holder, self.count);
        Some(Self::new(&self.of, self.holder, self.count))
    }

    /// Takes a share to replace this one unconditionally; the caller drops this one at once.
    pub(crate) fn replacement(&self) -> Self {
        self.of.state().add(self.holder, self.count);
        Self::new(&self.of, self.holder, self.count)
    }

    /// Transfers the share to another holder.
    pub(crate) fn hand_over(mut self, to: Holder) -> Self {
        {
            let mut state = self.of.state();
            state.give_back(self.holder, self.count);
            state.add(to, self.count);
        }
        self.holder = to;
        self
    }

    /// Adds `count` to the share, if the holder may have that.
    pub(crate) fn grow(&mut self, count: usize) -> bool {
        let mut state = self.of.state();
        let fits = state.fits(self.holder, count, 0);
        if fits {
            state.add(self.holder, count);
            self.count += count;
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.state().give_back(self.holder, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(host: u8, sender: u64) -> Holder {
        Holder { address: IpAddr::from([10, 0, 0, host]).into(), sender: Some(sender) }
    }

    /// Takes pairs until there are no more, and returns the total.
    fn flood(shares: &Shares, holder: Holder, into: &mut Vec<Share>) -> usize {
        let before = into.len();
        while let Some(share) = shares.take(holder, 2) {
            into.push(share);
        }
        2 * (into.len() - before)
    }

    #[test]
    fn each_further_address_and_sender_finds_room() {
        let (shares, mut taken) = (Shares::new(1000), Vec::new());
        assert_eq!(flood(&shares, holder(1, 0), &mut taken), 250);
        assert_eq!(flood(&shares, holder(1, 1), &mut taken), 124);
        let more: usize = (2..40).map(|sender| flood(&shares, holder(1, sender), &mut taken)).sum();
        assert!((370..=500).contains(&(374 + more)) && more > 50, "{more}");
        for host in 2..7 {
            let took = flood(&shares, holder(host, 0), &mut taken);
            assert!(took >= 2, "address {host}: {took}");
        }
        assert!(shares.used() < 1000);
        taken.clear();
        assert_eq!((shares.used(), shares.state().holders.len()), (0, 0));
        assert_eq!(flood(&shares, holder(1, 7), &mut taken), 250);
    }

    #[test]
    fn addresses_without_senders_leave_as_much_as_they_have() {
        let shares = Shares::new(100);
        let mut taken = Vec::new();
        let [one, two, three] = [1, 2, 3].map(|host| Holder { sender: None, ..holder(host, 0) });
        assert_eq!([one, two, three].map(|of| flood(&shares, of, &mut taken)), [50, 24, 12]);
        // An address gets more until it has half of the amount that it would find free.
        assert!(!shares.would_fit(three, 2, 1) && shares.would_fit(three, 2, 2) && !shares.would_fit(one, 2, 39));
        let share = taken.pop().expect("a share").hand_over(two);
        assert_eq!(shares.used(), 86);
        assert_eq!([three, two].map(|of| shares.state().has(of)), [10, 26]);
        taken.push(share);
        drop(taken);
        let mut share = shares.take(one, 40).expect("there is room");
        assert!(share.another().is_none() && !share.grow(20) && share.grow(10));
        let replacement = share.replacement();
        assert_eq!(shares.used(), 100);
        drop(share);
        assert_eq!((shares.used(), replacement.count), (50, 50));
    }

    #[test]
    fn what_is_lent_leaves_room_for_others() {
        let (shares, mut taken) = (Shares::new(1000), Vec::new());
        // An address that holds half.
        (0..100).for_each(|sender| _ = flood(&shares, holder(1, sender), &mut taken));
        let has = shares.used();
        assert!(has > 480 && taken[0].another().is_none(), "{has}");
        let mut successors: Vec<_> = taken.iter().map_while(Share::successor).collect();
        let lent = 2 * successors.len();
        assert!(lent >= 240 && lent <= 1000 - has - lent, "{lent} of {}", 1000 - has);
        assert!(taken[0].successor().is_none() && taken.last().is_some_and(|last| last.successor().is_none()));
        assert!(flood(&shares, holder(2, 0), &mut Vec::new()) > 50, "another address finds room");
        // The files before them are closed.
        taken.drain(..successors.len());
        assert_eq!(shares.state().lent, 0);
        assert_eq!(shares.used(), has);
        assert!(successors[0].successor().is_some(), "that of a successor");
        successors.clear();
        taken.clear();
        assert_eq!((shares.used(), shares.state().holders.len()), (0, 0));
    }

    #[test]
    fn a_host_has_one_address() {
        let address = |text: &str| Address::from(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        assert_eq!(address("2001:db8:1:2:3::1"), address("2001:db8:1:2::2"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("2001:db8:1:2:3::1").to_string(), "2001:db8:1:2::/64");
        assert_eq!(address("10.0.0.1").to_string(), "10.0.0.1");
    }
}

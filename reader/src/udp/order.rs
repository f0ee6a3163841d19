//! Restores the order of numbered messages, and reports the missing ones.
//!
//! A message whose number is not the next one is held until its predecessors have arrived or timed out, or too many messages are held. The missing
//! ones are then reported as a gap. A message of a reported gap is late when it arrives; one that arrived before is a duplicate. A delivered
//! message is never retracted.

mod missing;

use missing::Gaps;
use std::collections::BTreeMap;
use std::time::Duration;

/// Limits on held messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of messages that wait for a missing one.
    pub(super) messages: usize,
    /// Maximum size of these messages in bytes.
    pub(super) bytes: usize,
    /// How long a message waits for a missing one.
    pub(super) gap_timeout: Duration,
    /// Maximum jump of a number that is accepted without a second number near it.
    pub(super) max_jump: u64,
}

/// The next delivery, in the order of the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Delivery<T> {
    /// The message with this number.
    Message(u64, T),
    /// The messages with these numbers are missing.
    Gap { first: u64, count: u64 },
}

/// The result of a message's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It will be delivered. `overtaken`: a message with a higher number came before it.
    Taken { overtaken: bool },
    /// It had arrived before.
    Duplicate,
    /// It was reported as missing before it arrived.
    Late,
    /// Its number is too far from the others.
    Implausible,
    /// Too many messages are held before the first number is known. It will be reported as missing.
    Full,
}

#[derive(Debug)]
struct HeldMessage<T> {
    message: T,
    size: usize,
    since: Duration,
}

/// Messages between arrival and delivery.
#[derive(Debug)]
pub(super) struct Order<T> {
    limits: Limits,
    /// The number to deliver next.
    next: u64,
    /// True if `next` is certain. Until then lower numbers may arrive, and nothing is delivered.
    open: bool,
    held: BTreeMap<u64, HeldMessage<T>>,
    held_bytes: usize,
    /// Numbers that were reported as missing.
    missing: Gaps,
    /// The last implausible number: a second one near it makes both plausible.
    implausible: Option<u32>,
    /// True if held messages are delivered without waiting for missing ones.
    closing: bool,
}

impl<T> Order<T> {
    /// The first message has the number `next`.
    pub(super) fn new(next: u64, limits: Limits) -> Self {
        let (held, missing) = (BTreeMap::new(), Gaps::default());
        Self { limits, next, open: true, held, held_bytes: 0, missing, implausible: None, closing: false }
    }

    /// The first message is not known yet; it has a number near `low`.
    pub(super) fn unopened(low: u32, limits: Limits) -> Self {
        Self { open: false, ..Self::new((1 << 32) + u64::from(low), limits) }
    }

    /// Fixes the first message: the one with the lowest number so far.
    pub(super) fn open(&mut self) {
        self.open = true;
        self.next = self.held.first_key_value().map_or(self.next, |(first, _)| *first);
    }

    /// The number to deliver next.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Adds a message of `size` bytes by the low 32 bits of its number.
    pub(super) fn put(&mut self, low: u32, message: T, size: usize, now: Duration) -> Arrival {
        let ahead = low.wrapping_sub(self.next as u32).cast_signed();
        if ahead < 0 && self.open {
            let number = self.next.checked_sub(u64::from(ahead.unsigned_abs()));
            let late = number.is_some_and(|number| self.missing.take(number));
            return if late { Arrival::Late } else { Arrival::Duplicate };
        }
        // Before the first number is known, `next` is beyond 32 bits, and stays so.
        let number = self.next.wrapping_add_signed(i64::from(ahead));
        // After a large loss the numbers jump, and the next message confirms that. No message confirms a damaged number.
        if number.abs_diff(self.next) > self.limits.max_jump && !self.near_held(number) {
            let before = self.implausible.replace(low);
            let distance = before.map(|before| low.wrapping_sub(before).cast_signed().unsigned_abs());
            if distance.is_none_or(|distance| distance == 0 || u64::from(distance) > self.limits.max_jump) {
                return Arrival::Implausible;
            }
        }
        if self.held.contains_key(&number) {
            return Arrival::Duplicate;
        }
        if !self.open && self.is_full() {
            return Arrival::Full;
        }
        let overtaken = self.held.last_key_value().is_some_and(|(last, _)| *last > number);
        self.held_bytes += size;
        self.held.insert(number, HeldMessage { message, size, since: now });
        Arrival::Taken { overtaken }
    }

    fn is_full(&self) -> bool {
        self.held.len() > self.limits.messages || self.held_bytes > self.limits.bytes
    }

    /// True if a message with a similar number is held.
    fn near_held(&self, number: u64) -> bool {
        self.held.last_key_value().is_some_and(|(last, _)| number.abs_diff(*last) <= self.limits.max_jump)
    }

    /// The next delivery that is due.
    pub(super) fn next(&mut self, now: Duration) -> Option<Delivery<T>> {
        let (&number, held) = self.held.first_key_value().filter(|_| self.open)?;
        if number > self.next {
            if !self.is_full() && !self.closing && now < held.since.saturating_add(self.limits.gap_timeout) {
                return None;
            }
            return Some(self.skip_to(number));
        }
        let (number, held) = self.held.pop_first()?;
        self.held_bytes -= held.size;
        self.next = number + 1;
        Some(Delivery::Message(number, held.message))
    }

    /// When the next delivery is due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let (number, held) = self.held.first_key_value().filter(|_| self.open)?;
        Some(if *number == self.next { held.since } else { held.since.saturating_add(self.limits.gap_timeout) })
    }

    /// From now on messages do not wait for missing ones.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    /// True if nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Reports the numbers before `number` as missing. No message of them is held.
    pub(super) fn skip_to(&mut self, number: u64) -> Delivery<T> {
        let (first, count) = (self.next, number - self.next);
        self.missing.add(first, number);
        self.next = number;
        Delivery::Gap { first, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { messages: 3, bytes: 1000, gap_timeout: Duration::from_millis(100), max_jump: 1 << 16 };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn deliveries(order: &mut Order<u8>, now: Duration) -> Vec<Delivery<u8>> {
        std::iter::from_fn(|| order.next(now)).collect()
    }

    fn message(number: u64) -> Delivery<u8> {
        Delivery::Message(number, number as u8)
    }

    fn put(order: &mut Order<u8>, numbers: &[u64], now: Duration) -> Vec<Arrival> {
        numbers.iter().map(|number| order.put(*number as u32, *number as u8, 1, now)).collect()
    }

    #[test]
    fn messages_are_delivered_in_order() {
        let mut order = Order::new(0, LIMITS);
        let (fresh, overtaken) = (Arrival::Taken { overtaken: false }, Arrival::Taken { overtaken: true });
        assert_eq!(put(&mut order, &[2, 1, 0, 3], at(0)), [fresh, overtaken, overtaken, fresh]);
        assert_eq!(deliveries(&mut order, at(0)), [0, 1, 2, 3].map(message));
    }

    #[test]
    fn a_missing_message_times_out_and_is_then_late() {
        let mut order = Order::new(0, LIMITS);
        put(&mut order, &[0, 3], at(0));
        assert_eq!(deliveries(&mut order, at(99)), [message(0)]);
        assert_eq!(order.deadline(), Some(at(100)));
        assert_eq!(deliveries(&mut order, at(100)), [Delivery::Gap { first: 1, count: 2 }, message(3)]);
        assert_eq!(
            put(&mut order, &[2, 2, 3, 1], at(101)),
            [Arrival::Late, Arrival::Duplicate, Arrival::Duplicate, Arrival::Late]
        );
        assert_eq!(deliveries(&mut order, at(999)), []);
    }

    #[test]
    fn waiting_messages_are_bounded() {
        let mut order = Order::new(0, LIMITS);
        put(&mut order, &[1, 2, 3], at(0));
        assert_eq!(deliveries(&mut order, at(0)), []);
        put(&mut order, &[5], at(0));
        assert_eq!(
            deliveries(&mut order, at(0)),
            [Delivery::Gap { first: 0, count: 1 }, message(1), message(2), message(3)]
        );
        let mut order = Order::new(0, Limits { bytes: 10, ..LIMITS });
        order.put(1, 1, 11, at(0));
        assert_eq!(deliveries(&mut order, at(0)).len(), 2);
    }

    #[test]
    fn waiting_messages_are_delivered_at_the_end() {
        let mut order = Order::new(0, LIMITS);
        put(&mut order, &[1], at(0));
        order.close();
        assert_eq!(deliveries(&mut order, at(0)), [Delivery::Gap { first: 0, count: 1 }, message(1)]);
        assert!(order.is_empty());
        assert_eq!(order.skip_to(7), Delivery::Gap { first: 2, count: 5 });
        assert_eq!(order.next_number(), 7);
    }

    #[test]
    fn messages_wait_for_the_first_number() {
        let mut order = Order::unopened(7, LIMITS);
        put(&mut order, &[7, 5, 8], at(0));
        assert_eq!(deliveries(&mut order, at(999)), []);
        assert_eq!(put(&mut order, &[9, 10], at(0))[1], Arrival::Full);
        order.open();
        let base = 1 << 32;
        let gap = Delivery::Gap { first: base + 6, count: 1 };
        let expected = [5, 7, 8, 9].map(|number| Delivery::Message(base + number, number as u8));
        let [first, rest @ ..] = expected;
        assert_eq!(deliveries(&mut order, at(100)), [&[first, gap], &rest[..]].concat());
    }

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let mut order = Order::new(u64::from(u32::MAX), LIMITS);
        put(&mut order, &[1 << 32, u64::from(u32::MAX)], at(0));
        assert_eq!(deliveries(&mut order, at(0)), [message(u64::from(u32::MAX)), message(1 << 32)]);
    }

    #[test]
    fn a_jump_needs_two_messages() {
        let mut order = Order::new(0, LIMITS);
        assert_eq!(put(&mut order, &[1 << 30, 1 << 30, 0], at(0))[..2], [Arrival::Implausible; 2]);
        assert_eq!(deliveries(&mut order, at(0)), [message(0)]);
        let far = 1 << 20;
        let taken = Arrival::Taken { overtaken: false };
        assert_eq!(put(&mut order, &[far, far + 1, far + 2], at(0)), [Arrival::Implausible, taken, taken]);
        assert_eq!(
            deliveries(&mut order, at(100)),
            [Delivery::Gap { first: 1, count: far }, message(far + 1), message(far + 2)]
        );
    }
}

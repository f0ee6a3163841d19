//! Tests of each rule, and of all of them over simulated networks.

use super::*;

const LIMITS: Limits = Limits {
    packets: 256,
    bytes: 1 << 20,
    time: Duration::from_secs(2),
    delay: Duration::from_millis(20),
    end_delay: Duration::from_millis(20),
};

fn popped(reorder: &mut Reorder<u64>, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| reorder.pop(now))
        .map(|(seq, packet)| {
            assert_eq!(seq, packet);
            seq
        })
        .collect()
}

#[test]
fn numbers_that_were_never_sent_are_not_waited_for() {
    let (mut reorder, now) = (Reorder::new(0), Instant::now());
    reorder.push(2, NO_SEQ, 1, 2, now);
    reorder.push(5, 2, 1, 5, now);
    assert_eq!(popped(&mut reorder, now), [2, 5]);
    assert!(reorder.is_complete() && !reorder.tick(now, &LIMITS, &mut Vec::new()));
    reorder.push(3, 2, 1, 3, now);
    reorder.push(5, 2, 1, 5, now);
    assert_eq!((popped(&mut reorder, now), reorder.late), (vec![], 2));
}

#[test]
fn a_gap_is_asked_for_and_given_up() {
    let (mut reorder, start) = (Reorder::new(0), Instant::now());
    reorder.push(0, NO_SEQ, 1, 0, start);
    reorder.push(4, 3, 1, 4, start);
    reorder.push(7, 6, 1, 7, start);
    assert_eq!(popped(&mut reorder, start + GONE_TIME), [0]);
    let mut asked = Vec::new();
    assert!(!reorder.tick(start, &LIMITS, &mut asked));
    assert_eq!(asked, []);
    let asked_at = start + LIMITS.delay;
    assert!(!reorder.tick(asked_at, &LIMITS, &mut asked));
    assert_eq!(asked, [(1, 3), (5, 6)]);
    reorder.tick(asked_at + RETRY / 2, &LIMITS, &mut asked);
    assert_eq!(asked.len(), 2);
    // Some packets arrive and some are gone: the rest of the gap is still waited for.
    reorder.push(2, 0, 1, 2, start);
    reorder.gone(6, 6, start);
    reorder.gone(5, 5, start);
    assert_eq!(popped(&mut reorder, start + GONE_TIME), [2]);
    assert!(reorder.tick(asked_at + LIMITS.time, &LIMITS, &mut asked));
    assert_eq!((popped(&mut reorder, start + GONE_TIME), reorder.given_up), (vec![4, 7], 1));
    assert_eq!(reorder.lost, [(3, 3), (5, 6)], "the sender is told of these, and not of 1, which was never sent");
    reorder.push(3, 2, 1, 3, start);
    assert_eq!((popped(&mut reorder, start + GONE_TIME), reorder.late), (vec![], 1));
}

#[test]
fn a_gap_is_not_given_up_while_its_packets_are_sent_again() {
    let (mut reorder, start) = (Reorder::new(0), Instant::now());
    reorder.push(1, 0, 1, 1, start);
    reorder.push(3, 2, 1, 3, start);
    let mut asked = Vec::new();
    let mut now = start + LIMITS.delay;
    reorder.tick(now, &LIMITS, &mut asked);
    assert_eq!(asked, [(0, 0), (2, 2)]);
    // Both 0 and 2 take longer to arrive than a gap is waited for.
    for seq in [0, 2] {
        for _ in 0..4 {
            now += LIMITS.time / 2;
            reorder.answered(now);
            assert!(!reorder.tick(now, &LIMITS, &mut asked), "{seq}");
        }
        reorder.push(seq, seq.checked_sub(1).unwrap_or(NO_SEQ), 1, seq, now);
        assert_eq!(popped(&mut reorder, now), [seq, seq + 1]);
    }
    assert_eq!((reorder.given_up, reorder.is_complete()), (0, true));
    // Nothing of 4 arrives: it was requested after the last answer.
    reorder.push(5, 4, 1, 5, now);
    reorder.tick(now + LIMITS.delay, &LIMITS, &mut asked);
    assert!(!reorder.tick(now + LIMITS.time, &LIMITS, &mut asked));
    assert!(reorder.tick(now + LIMITS.delay + LIMITS.time, &LIMITS, &mut asked));
    assert_eq!((popped(&mut reorder, now), reorder.given_up), (vec![5], 1));
}

#[test]
fn over_tcp_nothing_is_given_up_but_what_the_sender_does_not_have() {
    let (mut reorder, start) = (Reorder::new(0), Instant::now());
    let silent = start + Duration::from_secs(3600);
    let hour = silent + LIMITS.time;
    reorder.push(0, NO_SEQ, 1, 0, start);
    reorder.sent_up_to(3, start);
    assert_eq!(popped(&mut reorder, start), [0]);
    let mut asked = Vec::new();
    for silent in [None, Some(silent + LIMITS.time / 2)] {
        assert!(!reorder.tick(hour, &LIMITS.over_tcp(silent, hour), &mut asked));
        assert_eq!(asked, [], "1 to 3 can be underway");
    }
    let limits = LIMITS.over_tcp(Some(silent), hour);
    for time in [hour, hour + LIMITS.time * 2] {
        assert!(!reorder.tick(time, &limits, &mut asked));
    }
    assert_eq!(asked, [(1, 3), (1, 3)]);
    reorder.sent_up_to(4, hour);
    assert!(!reorder.tick(hour + LIMITS.time / 2, &limits, &mut asked));
    assert_eq!(asked.len(), 2, "what was sent after the silence");
    reorder.gone(1, 2, hour);
    assert!(popped(&mut reorder, hour + GONE_TIME).is_empty());
    reorder.push(3, 2, 1, 3, hour);
    assert_eq!((popped(&mut reorder, hour + GONE_TIME), reorder.given_up), (vec![3], 0));
}

#[test]
fn a_gap_at_the_end_is_found_by_what_the_sender_tells() {
    let (mut reorder, start) = (Reorder::new(3), Instant::now());
    reorder.sent_up_to(NO_SEQ, start);
    reorder.sent_up_to(2, start);
    assert!(reorder.is_complete());
    reorder.sent_up_to(5, start);
    let mut asked = Vec::new();
    reorder.tick(start + LIMITS.delay, &LIMITS, &mut asked);
    assert_eq!(asked, [(3, 5)]);
    reorder.push(5, 4, 1, 5, start);
    reorder.gone(3, 4, start);
    assert_eq!(popped(&mut reorder, start + GONE_TIME), [5]);
    assert!(reorder.is_complete() && reorder.next_number() == 6);
    reorder.sent_up_to(9, start);
    reorder.tick(start, &LIMITS, &mut asked);
    reorder.tick(start + LIMITS.delay, &LIMITS, &mut asked);
    assert!(reorder.tick(start + LIMITS.delay + LIMITS.time, &LIMITS, &mut asked));
    assert_eq!((reorder.next_number(), reorder.given_up), (10, 1));
}

#[test]
fn a_full_queue_gives_up_at_once() {
    let (mut reorder, start) = (Reorder::new(0), Instant::now());
    reorder.push(1, 0, LIMITS.bytes, 1, start);
    assert!(!reorder.tick(start, &LIMITS, &mut Vec::new()));
    reorder.push(3, 2, 1, 3, start);
    assert!(reorder.tick(start, &LIMITS, &mut Vec::new()));
    assert_eq!(popped(&mut reorder, start + GONE_TIME), [1]);
    assert!(!reorder.tick(start, &LIMITS, &mut Vec::new()));
    assert_eq!(reorder.finish(), [(3, 3)]);
    assert!(reorder.is_complete() && reorder.next_number() == 4);
}

#[test]
fn what_a_sender_claims_to_be_gone_is_bounded() {
    let (mut reorder, now) = (Reorder::new(0), Instant::now());
    for number in 0..10_000 {
        reorder.gone(2 * number + 1, 2 * number + 1, now);
    }
    assert_eq!(reorder.gone.len(), MAX_RANGES);
    reorder.gone(0, u64::MAX, now);
    reorder.push(u64::MAX, 0, 1, 0, now);
    assert_eq!((popped(&mut reorder, now), reorder.late), (vec![], 1));
}

/// A network: packets underway, by the time of their arrival in milliseconds.
struct Network {
    random: u64,
    loss: u64,
    on_the_way: BTreeMap<(u64, u64), (u64, u64)>,
    sent: u64,
}

impl Network {
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    fn send(&mut self, packet: (u64, u64), now: u64) {
        let copies = if self.below(20) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            if self.below(100) >= self.loss {
                let most = if self.below(10) == 0 { 60 } else { 5 };
                let delay = 1 + self.below(most);
                self.sent += 1;
                self.on_the_way.insert((now + delay, self.sent), packet);
            }
        }
    }
}

/// Sends 400 packets over a bad network. Returns the numbers sent, and those that left, in order.
fn simulate(seed: u64, loss: u64, resends: bool) -> (Vec<u64>, Vec<u64>, Reorder<u64>) {
    let mut network = Network { random: seed * 2 + 1, loss, on_the_way: BTreeMap::new(), sent: 0 };
    let (mut reorder, start) = (Reorder::new(0), Instant::now());
    let (mut sent, mut store, mut out) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut answers: Vec<(u64, u64, u64)> = Vec::new();
    let (mut number, mut prev) = (0, NO_SEQ);
    for now in 0..60_000 {
        let instant = start + Duration::from_millis(now);
        if sent.len() < 400 {
            // The ring or the bandwidth cap has dropped some.
            number += 1 + if network.below(10) == 0 { network.below(5) } else { 0 };
            store.insert(number, prev);
            network.send((number, prev), now);
            sent.push(number);
            prev = number;
        }
        if now % 100 == 0 && prev != NO_SEQ {
            reorder.sent_up_to(prev, instant);
        }
        while let Some(first) = network.on_the_way.first_entry().filter(|first| first.key().0 <= now) {
            let (seq, prev) = first.remove();
            reorder.push(seq, prev, 100, seq, instant);
        }
        out.extend(std::iter::from_fn(|| reorder.pop(instant)).map(|(seq, _)| seq));
        let mut asked = Vec::new();
        if reorder.tick(instant, &LIMITS, &mut asked) {
            out.extend(std::iter::from_fn(|| reorder.pop(instant)).map(|(seq, _)| seq));
        }
        // The answers arrive over TCP, 3 ms later.
        answers.extend(asked.into_iter().map(|(first, last)| (now + 3, first, last)));
        let (due, later) = answers.into_iter().partition(|(time, ..)| *time <= now);
        answers = later;
        for (_, first, last) in due {
            for number in first..=last {
                match store.get(&number) {
                    Some(prev) if resends => network.send((number, *prev), now),
                    _ => reorder.gone(number, number, instant),
                }
            }
        }
        if sent.len() == 400
            && network.on_the_way.is_empty()
            && answers.is_empty()
            && now % 100 == 99
            && reorder.is_complete()
        {
            break;
        }
    }
    (sent, out, reorder)
}

#[test]
fn bad_networks_cost_no_order_and_no_packet_that_can_be_sent_again() {
    for seed in 1..=100 {
        for loss in [0, 1, 5, 30] {
            for resends in [true, false] {
                let (sent, out, reorder) = simulate(seed, loss, resends);
                let told = format!("seed {seed}, loss {loss} %, resends: {resends}");
                assert!(out.is_sorted_by(|a, b| a < b), "{told}: each once, in order");
                assert!(out.iter().all(|number| sent.binary_search(number).is_ok()), "{told}");
                let missing = |number: &u64| out.binary_search(number).is_err();
                let told_of = |number: &u64| reorder.lost.iter().any(|(first, last)| (first..=last).contains(&number));
                assert!(
                    sent.iter().all(|number| missing(number) == told_of(number)),
                    "{told}: lost is what is missing"
                );
                assert!(reorder.is_complete() && reorder.next_number() == sent[399] + 1, "{told}: it ends");
                if loss == 0 || loss <= 5 && resends {
                    assert_eq!(out, sent, "{told}: nothing is lost");
                    assert_eq!(reorder.given_up, 0, "{told}");
                }
            }
        }
    }
}

//! The load of a host over a day, generated from a seed.
//!
//! A host fires `rate` events per second on average. The rate varies by hour: 1.6 times the average at 15 h, 0.4 times at 3 h. Of each hour, only
//! `played` is played, at its real rate: a day is a sample of 24 intervals, and pauses between events are as long as in a real day. Three services
//! share the rate: `web` fires six tenths, `db` three, and `batch` one. With a probability of 1 in 24 an hour begins with a burst of `batch`: 20,000
//! events without a pause, more than a ring holds, so some may be lost. Bursts make up a larger share of the sample than of a real day.

use std::time::Duration;

use serde::Serialize;

/// Hours of a day.
pub const HOURS: u32 = 24;
/// Events of a burst.
pub const BURST: u64 = 20_000;
/// Seconds of a day.
pub const DAY_SECONDS: f64 = 86_400.0;

/// A service of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Answers requests.
    Web,
    /// Answers queries.
    Db,
    /// Runs background jobs.
    Batch,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 3] = [Self::Web, Self::Db, Self::Batch];

    /// The service's share of the host's events.
    fn share(self) -> f64 {
        match self {
            Self::Web => 0.6,
            Self::Db => 0.3,
            Self::Batch => 0.1,
        }
    }
}

/// Pseudo-random numbers: xorshift64.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed. Seeds may be small numbers.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            random.number();
        }
        random
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next number, below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }
}

/// The day of a fleet.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Day {
    /// The seed of all random choices.
    pub seed: u64,
    /// Average events per second of a host over the day, without bursts.
    pub rate: f64,
    /// Length of the interval played of each hour.
    pub played: Duration,
}

/// The load of a service in one hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hour {
    /// Events per second.
    pub rate: f64,
    /// Number of events fired without a pause at the beginning.
    pub burst: u64,
}

impl Day {
    /// The load of a host's service in one hour.
    pub fn hour(&self, host: u64, service: Service, hour: u32) -> Hour {
        let angle = std::f64::consts::TAU * (f64::from(hour) - 9.0) / f64::from(HOURS);
        let mut random = Random::new(self.seed.wrapping_mul(1_000_003) ^ (host << 8) ^ u64::from(hour));
        let is_burst = service == Service::Batch && random.below(u64::from(HOURS)) == 0;
        Hour { rate: self.rate * service.share() * (1.0 + 0.6 * angle.sin()), burst: if is_burst { BURST } else { 0 } }
    }

    /// Number of events that a host fires in the played intervals.
    pub fn events(&self, host: u64) -> u64 {
        let hours = (0..HOURS).flat_map(|hour| Service::ALL.map(|service| self.hour(host, service, hour)));
        hours.map(|hour| self.paced(hour) + hour.burst).sum()
    }

    /// Number of events that a service fires in an hour, without the burst.
    pub fn paced(&self, hour: Hour) -> u64 {
        (hour.rate * self.played.as_secs_f64()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_mean_its_peak_and_its_bursts() {
        let day = Day { seed: 7, rate: 1000.0, played: Duration::from_secs(1) };
        let rates: Vec<f64> =
            (0..HOURS).map(|hour| Service::ALL.map(|it| day.hour(1, it, hour).rate).iter().sum()).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((mean - 1000.0).abs() < 1e-6 && (rates[15] - 1600.0).abs() < 1e-6 && (rates[3] - 400.0).abs() < 1e-6);
        let bursts = |host| (0..HOURS).filter(|hour| day.hour(host, Service::Batch, *hour).burst > 0).count();
        let all: usize = (0..100).map(bursts).sum();
        assert!((60..150).contains(&all), "one of 24 hours: {all}");
        let of_bursts = bursts(1) as u64 * BURST;
        assert!((23_900..=24_000).contains(&(day.events(1) - of_bursts)), "{}", day.events(1));
        assert_eq!(day.hour(1, Service::Web, 4), day.hour(1, Service::Web, 4));
    }
}

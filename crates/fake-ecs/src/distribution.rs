//! Distributions of durations: fixed, uniform or lognormal.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::invalid_text::InvalidText;
use super::rng::Rng;

const EXPECTED: &str = "a duration: expected one such as 500ms, a range such as 1s..5s, or lognormal:MEDIAN,SIGMA with SIGMA \
                        from 0 to 2";

/// A distribution of durations: `2s`, `1s..5s` (uniform), or `lognormal:60ms,0.6` (median and sigma).
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DurationDistribution {
    /// A duration from `min` to `max`, in milliseconds.
    Uniform { min: Duration, max: Duration },
    /// `median * exp(sigma * z)` with `z` from the standard normal distribution, truncated at
    /// [`CUTOFF`].
    Lognormal {
        median: Duration,
        /// The standard deviation of the logarithm; finite and not negative.
        sigma: f64,
    },
}

// Sigma is never NaN: `FromStr` rejects it.
impl Eq for DurationDistribution {}

impl Default for DurationDistribution {
    fn default() -> Self {
        Self::fixed(Duration::ZERO)
    }
}

/// Maximum distance of a lognormal draw from its median, in standard deviations: one draw in 16,000 is truncated.
const CUTOFF: f64 = 4.0;

/// Largest accepted sigma: the longest draw is 3,000 times the median.
const MAX_SIGMA: f64 = 2.0;

impl DurationDistribution {
    #[must_use]
    pub fn fixed(duration: Duration) -> Self {
        Self::Uniform {
            min: duration,
            max: duration,
        }
    }

    /// The longest possible draw.
    #[must_use]
    pub fn max(self) -> Duration {
        match self {
            Self::Uniform { max, .. } => max,
            Self::Lognormal { median, sigma } => median.mul_f64((sigma * CUTOFF).exp()),
        }
    }

    #[must_use]
    pub fn is_zero(self) -> bool {
        self.max().is_zero()
    }

    pub(crate) fn draw(self, rng: &mut Rng) -> Duration {
        match self {
            Self::Uniform { min, max } => match u64::try_from((max - min).as_millis()) {
                Ok(0) | Err(_) => min,
                Ok(width) => min + Duration::from_millis(rng.below(width + 1)),
            },
            Self::Lognormal { median, sigma } => {
                let z = rng.normal().clamp(-CUTOFF, CUTOFF);
                median.mul_f64((sigma * z).exp())
            }
        }
    }
}

impl FromStr for DurationDistribution {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let invalid = || InvalidText(text.to_owned(), EXPECTED);
        let parse = |part: &str| humantime::parse_duration(part.trim()).map_err(|_| invalid());
        if let Some(parameters) = text.trim().strip_prefix("lognormal:") {
            let (median, sigma) = parameters.split_once(',').ok_or_else(invalid)?;
            let sigma: f64 = sigma.trim().parse().map_err(|_| invalid())?;
            let median = parse(median)?;
            let accepted = (0.0..=MAX_SIGMA).contains(&sigma);
            return accepted
                .then_some(Self::Lognormal { median, sigma })
                .ok_or_else(invalid);
        }
        match text.split_once("..") {
            None => parse(text).map(Self::fixed),
            Some((min, max)) => {
                let (min, max) = (parse(min)?, parse(max)?);
                (min <= max).then_some(Self::Uniform { min, max }).ok_or_else(invalid)
            }
        }
    }
}

impl TryFrom<String> for DurationDistribution {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        text.parse()
    }
}

impl From<DurationDistribution> for String {
    fn from(spread: DurationDistribution) -> Self {
        spread.to_string()
    }
}

impl fmt::Display for DurationDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform { min, max } if min == max => {
                write!(f, "{}", humantime::format_duration(*min))
            }
            Self::Uniform { min, max } => {
                let (min, max) = (humantime::format_duration(*min), humantime::format_duration(*max));
                write!(f, "{min}..{max}")
            }
            Self::Lognormal { median, sigma } => {
                let median = humantime::format_duration(*median);
                write!(f, "lognormal:{median},{sigma}")
            }
        }
    }
}

pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

pub(crate) fn before(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_sub(duration).unwrap_or(Timestamp::MIN)
}

/// The duration until `to`; zero if it is in the past.
pub(crate) fn until(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_parsed_and_printed_alike() {
        for text in ["500ms", "1s..5s", "0s", "lognormal:60ms,0.6"] {
            assert_eq!(text.parse::<DurationDistribution>().unwrap().to_string(), text);
        }
        assert_eq!("0.5s".parse::<DurationDistribution>().unwrap().to_string(), "500ms");
    }

    #[test]
    fn an_inverted_range_and_a_sigma_out_of_range_are_rejected() {
        assert!("5s..1s".parse::<DurationDistribution>().is_err());
        assert!("soon".parse::<DurationDistribution>().is_err());
        assert!("-1s".parse::<DurationDistribution>().is_err());
        for text in ["60ms,x", "60ms", "60ms,-0.1", "60ms,NaN", "60ms,2.1", "x,0.5"] {
            assert!(
                format!("lognormal:{text}").parse::<DurationDistribution>().is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn draws_are_within_the_range() {
        let spread: DurationDistribution = "1s..2s".parse().unwrap();
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            let drawn = spread.draw(&mut rng);
            assert!(drawn >= Duration::from_secs(1) && drawn <= spread.max(), "{drawn:?}");
        }
    }

    #[test]
    fn a_lognormal_latency_has_its_median_and_its_tail() {
        let spread: DurationDistribution = "lognormal:60ms,0.6".parse().unwrap();
        let mut rng = Rng::new(3);
        let mut drawn: Vec<_> = (0..10_001).map(|_| spread.draw(&mut rng)).collect();
        drawn.sort_unstable();
        let at = |permille: usize| drawn[drawn.len() * permille / 1000].as_secs_f64() * 1000.0;
        // exp(0.6 * z) for z = 0 and 1.2816, the standard normal's 50 % and 90 %.
        assert!((at(500) - 60.0).abs() < 2.0, "{}", at(500));
        assert!((at(900) - 129.4).abs() < 5.0, "{}", at(900));
        assert!(drawn.last().unwrap() <= &spread.max());
    }
}

//! A duration, or a range of durations from which each operation draws its own.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;

use super::ids::Rng;

/// How long something takes: `2s`, or `1s..5s` for anything between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spread {
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

/// A text that is no [`Spread`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no duration: wanted one such as 500ms, or a range such as 1s..5s")]
pub struct InvalidSpread(String);

impl Spread {
    /// Always this long.
    #[must_use]
    pub fn fixed(duration: Duration) -> Self {
        Self {
            min: duration,
            max: duration,
        }
    }

    /// Whether it is always nothing.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.max.is_zero()
    }

    pub(crate) fn draw(self, rng: &mut Rng) -> Duration {
        let width = u64::try_from((self.max.saturating_sub(self.min)).as_millis());
        match width {
            Ok(0) | Err(_) => self.min,
            Ok(width) => self.min + Duration::from_millis(rng.below(width + 1)),
        }
    }
}

impl FromStr for Spread {
    type Err = InvalidSpread;

    fn from_str(text: &str) -> Result<Self, InvalidSpread> {
        let refuse = || InvalidSpread(text.to_owned());
        let parse = |part: &str| humantime::parse_duration(part.trim()).map_err(|_| refuse());
        match text.split_once("..") {
            None => parse(text).map(Self::fixed),
            Some((min, max)) => {
                let (min, max) = (parse(min)?, parse(max)?);
                (min <= max).then_some(Self { min, max }).ok_or_else(refuse)
            }
        }
    }
}

impl TryFrom<String> for Spread {
    type Error = InvalidSpread;

    fn try_from(text: String) -> Result<Self, InvalidSpread> {
        text.parse()
    }
}

impl From<Spread> for String {
    fn from(spread: Spread) -> Self {
        spread.to_string()
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", humantime::format_duration(self.min))?;
        if self.max != self.min {
            write!(f, "..{}", humantime::format_duration(self.max))?;
        }
        Ok(())
    }
}

/// The time so long after another.
pub(crate) fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// The time so long before another.
pub(crate) fn before(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_sub(duration).unwrap_or(Timestamp::MIN)
}

/// How long until `to`; nothing when it has passed.
pub(crate) fn until(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_ranges_are_read_and_written_alike() {
        for text in ["500ms", "1s..5s", "0s"] {
            assert_eq!(text.parse::<Spread>().unwrap().to_string(), text);
        }
        assert_eq!("0.5s".parse::<Spread>().unwrap().to_string(), "500ms");
    }

    #[test]
    fn a_range_that_runs_backwards_is_refused() {
        assert!("5s..1s".parse::<Spread>().is_err());
        assert!("soon".parse::<Spread>().is_err());
        assert!("-1s".parse::<Spread>().is_err());
    }

    #[test]
    fn what_is_drawn_lies_within_the_range() {
        let spread: Spread = "1s..2s".parse().unwrap();
        let mut rng = Rng::new(3);
        for _ in 0..100 {
            let drawn = spread.draw(&mut rng);
            assert!(drawn >= spread.min && drawn <= spread.max, "{drawn:?}");
        }
    }
}

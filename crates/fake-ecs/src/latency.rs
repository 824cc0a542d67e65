//! Latency of calls in the network and the gateway, apart from the duration of the operation.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::distribution::DurationDistribution;
use super::invalid_text::InvalidText;
use super::rng::Rng;

const EXPECTED: &str = "a latency: expected a duration, a range, lognormal:MEDIAN,SIGMA, ACTION=one of these, or \
                        effect=arrival|departure";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// Latency of every action that is not in `actions`.
    pub all: DurationDistribution,
    pub actions: BTreeMap<String, DurationDistribution>,
    /// When a call takes effect.
    pub effect: EffectTime,
}

/// When a call reads or changes the state during its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum EffectTime {
    /// At the start: a response is as old as its latency.
    #[default]
    Arrival,
    /// At the end: a response is up to date, and the effect is delayed.
    Departure,
}

impl Latency {
    /// Draws the latency of one call, before and after its effect.
    pub(crate) fn draw(&self, action: Action, rng: &mut Rng) -> (Duration, Duration) {
        let spread = self.actions.get(action.as_str()).unwrap_or(&self.all);
        let latency = spread.draw(rng);
        match self.effect {
            EffectTime::Arrival => (Duration::ZERO, latency),
            EffectTime::Departure => (latency, Duration::ZERO),
        }
    }
}

/// One value of `--latency`: `60ms`, `AttachDisk=0.3s` or `effect=departure`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LatencySetting {
    /// The latency of all other actions.
    All(DurationDistribution),
    /// The latency of an action.
    Of(String, DurationDistribution),
    /// When calls take effect.
    Effect(EffectTime),
}

impl FromStr for LatencySetting {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let invalid = || InvalidText(text.to_owned(), EXPECTED);
        let spread = |text: &str| text.parse::<DurationDistribution>().map_err(|_| invalid());
        match text.split_once('=') {
            None => spread(text).map(Self::All),
            Some(("effect", "arrival")) => Ok(Self::Effect(EffectTime::Arrival)),
            Some(("effect", "departure")) => Ok(Self::Effect(EffectTime::Departure)),
            Some((action, text)) => {
                action.parse::<Action>().map_err(|()| invalid())?;
                Ok(Self::Of(action.to_owned(), spread(text)?))
            }
        }
    }
}

impl FromIterator<LatencySetting> for Latency {
    fn from_iter<T: IntoIterator<Item = LatencySetting>>(settings: T) -> Self {
        let mut latency = Self::default();
        for setting in settings {
            match setting {
                LatencySetting::All(spread) => latency.all = spread,
                LatencySetting::Of(action, spread) => {
                    latency.actions.insert(action, spread);
                }
                LatencySetting::Effect(effect) => latency.effect = effect,
            }
        }
        latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(settings: &[&str]) -> Latency {
        settings
            .iter()
            .map(|text| text.parse::<LatencySetting>().unwrap())
            .collect()
    }

    #[test]
    fn an_action_has_its_own_latency() {
        let latency = latency(&["lognormal:60ms,0.6", "AttachDisk=0.3s"]);
        let mut rng = Rng::new(1);
        let attach = latency.draw(Action::AttachDisk, &mut rng);
        assert_eq!(attach, (Duration::ZERO, Duration::from_millis(300)));
        let (before, after) = latency.draw(Action::DetachDisk, &mut rng);
        assert!(before.is_zero() && !after.is_zero());
    }

    #[test]
    fn the_effect_comes_before_or_after_the_latency() {
        let latency = latency(&["60ms", "effect=departure"]);
        let drawn = latency.draw(Action::AttachDisk, &mut Rng::new(1));
        assert_eq!(drawn, (Duration::from_millis(60), Duration::ZERO));
    }

    #[test]
    fn a_latency_requires_a_known_action() {
        assert!("AttachDisc=3s".parse::<LatencySetting>().is_err());
        assert!("effect=later".parse::<LatencySetting>().is_err());
    }
}

//! Prices for the estimated cost, from a file of the user: the cloud's prices depend on region and contract.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::finding::{Finding, Kind};
use crate::model::{Category, Gib, PerformanceLevel};

/// Prices per GiB and month.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Printed after amounts, such as `USD`.
    pub currency: String,
    /// By category, or by category and performance level.
    #[serde(default)]
    disks: BTreeMap<PriceKey, Price>,
    #[serde(default)]
    snapshots: Option<Price>,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}; docs/guides/orphans.md describes the file")]
pub struct InvalidPrices(String);

/// `CATEGORY` or `CATEGORY/LEVEL`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct PriceKey {
    category: Category,
    level: Option<PerformanceLevel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
struct Price(f64);

impl TryFrom<f64> for Price {
    type Error = String;

    fn try_from(amount: f64) -> Result<Self, String> {
        match amount.is_finite() && amount >= 0.0 {
            true => Ok(Self(amount)),
            false => Err(format!(
                "{amount} is not a price; allowed: a number of at least 0"
            )),
        }
    }
}

impl TryFrom<String> for PriceKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, level) = match text.split_once('/') {
            Some((name, level)) => (name, Some(level)),
            None => (text.as_str(), None),
        };
        let known = Category::KNOWN
            .into_iter()
            .find(|known| known.as_str() == name);
        let Some(category) = known else {
            let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
            return Err(format!(
                "{name:?} is not a category; allowed: {}, and cloud_essd/PL0 to cloud_essd/PL3",
                names.join(", ")
            ));
        };
        let level: Option<PerformanceLevel> = level
            .map(|level| level.parse().map_err(|error| format!("{text}: {error}")))
            .transpose()?;
        if level.is_some() && !category.has_levels() {
            return Err(format!("{text}: {category} has no performance levels"));
        }
        Ok(Self { category, level })
    }
}

impl Prices {
    /// Parses the file.
    ///
    /// # Errors
    /// With the place and the reason, also for unknown keys.
    pub fn parse(text: &str) -> Result<Self, InvalidPrices> {
        serde_saphyr::from_str(text).map_err(|error| InvalidPrices(error.to_string()))
    }

    /// The estimated cost of a month; none without a price. A snapshot is billed by the data in it, so that its estimate by
    /// the size of its disk is an upper bound.
    #[must_use]
    pub fn monthly(&self, finding: &Finding) -> Option<f64> {
        let price = match finding.kind {
            Kind::Snapshot => self.snapshots?,
            Kind::Disk => {
                let category = finding.category.clone()?;
                let level = finding.performance_level.as_deref();
                let level = level.and_then(|level| level.parse().ok());
                let exact = PriceKey { category, level };
                let any = PriceKey {
                    level: None,
                    ..exact.clone()
                };
                *self.disks.get(&exact).or_else(|| self.disks.get(&any))?
            }
        };
        let Gib(size) = finding.size?;
        Some(price.0 * f64::from(size))
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Class;
    use super::*;

    const FILE: &str = "currency: USD\ndisks:\n  cloud_essd: 0.2\n  cloud_essd/PL2: 0.5\n  cloud_auto: 0.1\n\
                        snapshots: 0.02\n";

    fn finding(kind: Kind, category: Category, level: Option<&str>) -> Finding {
        Finding {
            class: Class::Leaked,
            kind,
            id: "d-1".to_owned(),
            object: None,
            claim: None,
            created: None,
            size: Some(Gib(100)),
            category: Some(category),
            performance_level: level.map(str::to_owned),
            zone: None,
            instances: Vec::new(),
            detail: None,
        }
    }

    #[test]
    fn price_of_the_level_precedes_that_of_the_category() {
        let prices = Prices::parse(FILE).unwrap();
        let cost = |category, level| prices.monthly(&finding(Kind::Disk, category, level));
        assert_eq!(cost(Category::CloudEssd, Some("PL1")), Some(20.0));
        assert_eq!(cost(Category::CloudEssd, Some("PL2")), Some(50.0));
        assert_eq!(cost(Category::CloudAuto, None), Some(10.0));
        assert_eq!(cost(Category::CloudSsd, None), None);
        let snapshot = finding(Kind::Snapshot, Category::CloudSsd, None);
        assert_eq!(prices.monthly(&snapshot), Some(2.0));
    }

    #[test]
    fn unknown_keys_categories_levels_and_negative_prices_are_errors() {
        for (text, named) in [
            ("currency: USD\ndisk: {}\n", "disk"),
            ("disks: {}\n", "currency"),
            ("currency: USD\ndisks: {cloud_x: 1}\n", "cloud_x"),
            ("currency: USD\ndisks: {cloud_essd/PL9: 1}\n", "PL9"),
            (
                "currency: USD\ndisks: {cloud_auto/PL1: 1}\n",
                "no performance levels",
            ),
            ("currency: USD\nsnapshots: -1\n", "-1"),
            ("currency: USD\nsnapshots: cheap\n", "snapshots"),
        ] {
            let error = Prices::parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}

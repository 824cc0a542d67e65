//! The values of `--rate-limits`.

use std::ops::RangeInclusive;

use ecs::client::ACTIONS;
use ecs::rate_limit::ACCOUNT;

/// Calls per second.
const ALLOWED: RangeInclusive<f64> = 0.01..=1000.0;

/// The action, or [`ACCOUNT`], and its limit.
pub(super) fn rate_limit(text: &str) -> Result<(&'static str, f64), String> {
    let syntax = || "allowed: ACTION=CALLS_PER_SECOND, such as DescribeDisks=5".to_owned();
    let (name, rate) = text.split_once('=').ok_or_else(syntax)?;
    let mut actions = ACTIONS.iter().chain([&ACCOUNT]);
    let action = actions.find(|action| **action == name.trim()).ok_or_else(|| {
        let allowed = ACTIONS.join(", ");
        format!("{name:?} is not an action of the driver; allowed: {ACCOUNT}, {allowed}")
    })?;
    let rate = rate.trim().parse().ok().filter(|rate| ALLOWED.contains(rate));
    let rate = rate.ok_or_else(|| {
        let (least, most) = (ALLOWED.start(), ALLOWED.end());
        format!("allowed: {least} to {most} calls per second")
    })?;
    Ok((action, rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_names_an_action_and_a_positive_rate() {
        assert_eq!(rate_limit("DescribeDisks=2.5").unwrap(), ("DescribeDisks", 2.5));
        assert_eq!(rate_limit("account=10").unwrap(), (ACCOUNT, 10.0));
        for text in ["", "DescribeDisks", "5"] {
            let error = rate_limit(text).unwrap_err();
            assert!(error.contains("ACTION=CALLS_PER_SECOND"), "{text}: {error}");
        }
        for rate in ["", "0", "-1", "NaN", "inf", "1001", "fast"] {
            let error = rate_limit(&format!("CreateDisk={rate}")).unwrap_err();
            assert!(error.contains("0.01 to 1000"), "{rate}: {error}");
        }
        let error = rate_limit("describedisks=1").unwrap_err();
        assert!(
            error.contains("\"describedisks\"") && error.contains("DescribeDisks"),
            "{error}"
        );
    }
}

//! What can be set by flags and changed while the fake cloud runs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fault::Fault;
use super::health::Ailment;
use super::latency::Latency;
use super::spread::Spread;
use super::stock::SoldOut;
use super::text;
use super::throttle::Limits;

/// How the fake cloud behaves. In JSON, durations are texts such as `2s`; delays and latencies also `1s..5s` or
/// `lognormal:60ms,0.6`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long operations take.
    pub delays: Delays,
    /// How long calls take.
    pub latency: Latency,
    /// How old what `DescribeDisks` and `DescribeSnapshots` show is.
    pub stale: Stale,
    /// How many calls are allowed.
    pub throttle: Limits,
    /// What goes wrong, and when.
    pub faults: Vec<Fault>,
    /// How disks are ill, by id.
    pub ailing: BTreeMap<String, Ailment>,
    /// What cannot be bought.
    pub sold_out: Vec<SoldOut>,
    /// Actions that RAM denies: writes answer 403 `Forbidden.RAM`, lists an empty page.
    pub denied: Vec<String>,
    /// Access keys that are switched off.
    pub inactive_keys: Vec<String>,
    /// The rules that differ between accounts, or that the documents leave open.
    pub rules: Rules,
    /// Capacity and account limits.
    pub limits: Quotas,
    /// Keys of the user's, and whether all disks are encrypted.
    pub keys: Keys,
    /// What keeps snapshots from being deleted or used.
    pub holds: Holds,
    /// The instance metadata service.
    pub metadata: Metadata,
    /// The Security Token Service.
    pub sts: Sts,
}

/// How long operations take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Delays {
    /// `Creating` to `Available`.
    pub create: Spread,
    /// `Attaching` to `In_use`.
    pub attach: Spread,
    /// `Detaching` to `Available`.
    pub detach: Spread,
    /// Until a new size shows; another resize meanwhile is `LastOrderProcessing`.
    pub resize: Spread,
    /// Until a disk has another category.
    pub modify: Spread,
    /// Until the point in time of a snapshot is cut (`CreationTime` is empty until then).
    pub cut: Spread,
    /// Until a snapshot is `accomplished`, counted from the call.
    pub snapshot: Spread,
    /// Until a deleted disk is gone for good; it is hidden from the call on.
    pub delete: Spread,
    /// How long a disk made from a snapshot refuses deletion (`IncorrectDiskStatus.Initializing`).
    pub load: Spread,
    /// How long an instance takes to start or stop.
    pub power: Spread,
    /// How long after `Running` shows an instance still refuses `AttachDisk`.
    pub ready: Spread,
}

/// How stale reads are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Stale {
    /// The lag of the replica; its longest value unless `jumping`.
    pub lag: Spread,
    /// Each call draws its own lag: a new value may be followed by an old one.
    pub jumping: bool,
    /// How many reads in a hundred are stale; the others are up to date. Unset, all are.
    pub percent: Option<u8>,
    /// `Status`, `InstanceId` and `Device` of a disk are old while the rest of its row is new, its
    /// attachments too: they disagree.
    pub torn: bool,
    /// How much older than the rest the index is by which lists find tags: what was just made or
    /// tagged is shown by its id and not found by its tags.
    #[serde(with = "text")]
    pub tags: Duration,
}

impl Stale {
    /// How long old rows are remembered; zero when nobody asks for any.
    pub(crate) fn memory(&self) -> Duration {
        self.lag.max().max(self.tags)
    }
}

/// Rules that are switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// One attach and one detach at a time per instance, as in the real cloud, unless the instance
    /// carries `supportConcurrencyAttach` or `supportConcurrencyDetach`.
    pub one_at_a_time: bool,
    /// Where it is one at a time, attaching and detaching are one thing: neither begins during the other.
    pub shared_turn: bool,
    /// A disk that was never attached cannot be snapshotted (`IncorrectDiskStatus.NeverAttached`).
    /// Off: CSI's conformance suite takes snapshots of volumes that were never published.
    pub never_attached: bool,
    /// Deleting what is not there is 404 instead of success. The documents say both.
    pub missing_is_error: bool,
    /// A snapshot that disks were made from needs `Force`.
    pub snapshot_in_use: bool,
    /// Which of two documented alternatives is answered.
    pub alternatives: Alternatives,
    /// How many in a hundred failed creates burn their `ClientToken`.
    pub token_burn_percent: u8,
    /// How long a `ClientToken` is remembered.
    #[serde(with = "text")]
    pub token_memory: Duration,
    /// How long after a create a repeat of it is still "in flight".
    #[serde(with = "text")]
    pub token_in_flight: Duration,
    /// Rows that a list filtered by tags or resource group shows at all, whatever the page.
    pub filtered_rows: usize,
    /// How long a `NextToken` is good.
    #[serde(with = "text")]
    pub page_memory: Duration,
    /// How long after a change of its category a disk refuses another (`DiskInCoolingPeriod`).
    #[serde(with = "text")]
    pub cooling: Duration,
    /// Stock answers do not show what is sold out.
    pub stock_lags: bool,
    /// How old what stock answers show is.
    #[serde(with = "text")]
    pub stock_lag: Duration,
    /// Number of disks an instance takes, the system disk included, whatever its type says.
    pub disk_quantity: Option<u32>,
    /// How many calls the log keeps.
    pub log_length: usize,
}

/// Which of several documented errors is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Alternatives {
    /// Drawn from the seed.
    #[default]
    Seeded,
    /// Always the one that the documents name first.
    First,
    /// Always the one that they name last.
    Last,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            one_at_a_time: true,
            shared_turn: false,
            never_attached: false,
            missing_is_error: false,
            snapshot_in_use: true,
            alternatives: Alternatives::Seeded,
            token_burn_percent: 0,
            token_memory: Duration::from_hours(24),
            token_in_flight: Duration::ZERO,
            filtered_rows: 1000,
            page_memory: Duration::from_hours(1),
            cooling: Duration::ZERO,
            stock_lags: false,
            stock_lag: Duration::ZERO,
            disk_quantity: None,
            log_length: 10_000,
        }
    }
}

/// Encryption at rest. A key that is in no list is good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Keys that do not exist (`InvalidParameter.KMSKeyId.NotFound`).
    pub missing: Vec<String>,
    /// Keys that are switched off (`….CMKNotEnabled`).
    pub disabled: Vec<String>,
    /// Keys that the disk service may not use (`….CMKUnauthorized`).
    pub unauthorised: Vec<String>,
    /// Keys that are not symmetric (`InvalidKMSKeyId.NotSymmetric`).
    pub asymmetric: Vec<String>,
    /// Encryption by default.
    pub default_encryption: DefaultEncryption,
}

/// What becomes of a disk that is not to be encrypted. The documents say both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultEncryption {
    /// It is not.
    #[default]
    Off,
    /// It is all the same.
    Upgrade,
    /// It is refused (`InvalidEncrypted.NotMatchDiskDefaultEncryption`).
    Refuse,
}

/// Snapshots, by id, that somebody holds in a way which no call of this fake makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Holds {
    /// An image was made from them: deleting is `SnapshotCreatedImage`, forced or not.
    pub images: Vec<String>,
    /// They are locked: deleting is `InvalidOperation.SnapshotIsLocked`.
    pub locked: Vec<String>,
    /// They are in the archive: creating a disk is `InvalidSnapshotId.NotReady`.
    pub archived: Vec<String>,
}

/// Limits of the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// GiB of one category in one zone (`QuotaExceed.DiskCapacity`).
    pub zone_category_gib: Option<u64>,
    /// GiB of all disks (`QuotaExceeded.PostpaidDataDiskCapacity`).
    pub total_gib: Option<u64>,
    /// The account has no money (`InvalidAccountStatus.NotEnoughBalance`).
    pub no_balance: bool,
}

/// The instance metadata service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// Only requests that carry a token are answered (`HttpTokens=required`).
    pub token_required: bool,
    /// Tokens are not given out (`PUT api/token` is 404): an old machine.
    pub no_tokens: bool,
    /// Connections end without an answer.
    pub unreachable: bool,
    /// Latency of every answer.
    #[serde(with = "text")]
    pub delay: Duration,
    /// Requests a second for each instance; more answer 429.
    pub rate: Option<u32>,
    /// The RAM role of the instances; none answers 404.
    pub role: Option<String>,
    /// How long role credentials are good; new ones appear at half of that.
    #[serde(with = "text")]
    pub credential_life: Duration,
}

impl Default for Metadata {
    fn default() -> Self {
        Self {
            token_required: false,
            no_tokens: false,
            unreachable: false,
            delay: Duration::ZERO,
            rate: None,
            role: Some("diskplugin-node".to_owned()),
            credential_life: Duration::from_hours(6),
        }
    }
}

/// The Security Token Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sts {
    /// Connections end without an answer.
    pub unreachable: bool,
    /// What every call is refused with.
    pub refusal: Option<StsRefusal>,
    /// Latency of every answer.
    #[serde(with = "text")]
    pub delay: Duration,
    /// The roles that may be assumed, `acs:ram::UID:role/NAME`.
    pub roles: Vec<String>,
    /// The identity providers whose tokens are believed, `acs:ram::UID:oidc-provider/NAME`.
    pub oidc_providers: Vec<String>,
    /// What `AssumeRole` must give as `ExternalId`.
    pub external_id: Option<String>,
    /// How long credentials are good, whatever is asked for; nothing leaves it to the caller.
    #[serde(with = "text")]
    pub life: Duration,
}

/// A refusal of the Security Token Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StsRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: String,
}

impl Default for Sts {
    fn default() -> Self {
        let own = |what: &str| vec![format!("acs:ram::1000000000000001:{what}/diskplugin")];
        Self {
            unreachable: false,
            refusal: None,
            delay: Duration::ZERO,
            roles: own("role"),
            oidc_providers: own("oidc-provider"),
            external_id: None,
            life: Duration::ZERO,
        }
    }
}

/// A change that is no configuration.
#[derive(Debug, thiserror::Error)]
#[error("the changed configuration is not valid")]
pub struct InvalidConfig(#[source] serde_json::Error);

impl Config {
    /// This configuration with the changes of a JSON merge patch (RFC 7396).
    ///
    /// # Errors
    /// When the outcome has an unknown field or a value that cannot be read.
    pub fn patched(&self, patch: &serde_json::Value) -> Result<Self, InvalidConfig> {
        let mut value = serde_json::to_value(self).map_err(InvalidConfig)?;
        merge(&mut value, patch);
        serde_json::from_value(value).map_err(InvalidConfig)
    }
}

fn merge(target: &mut serde_json::Value, patch: &serde_json::Value) {
    let serde_json::Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = serde_json::json!({});
    }
    if let Some(fields) = target.as_object_mut() {
        for (name, change) in changes {
            if change.is_null() {
                fields.remove(name);
            } else {
                merge(
                    fields.entry(name).or_insert(serde_json::Value::Null),
                    change,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_changes_what_it_names_and_nothing_else() {
        let config = Config::default();
        let patch = json!({"delays": {"attach": "1s..5s"}, "rules": {"never_attached": true}});
        let patched = config.patched(&patch).unwrap();
        assert_eq!(patched.delays.attach, "1s..5s".parse().unwrap());
        assert!(patched.rules.never_attached && patched.rules.one_at_a_time);
        assert_eq!(patched.metadata, config.metadata);
    }

    #[test]
    fn null_puts_a_field_back_to_its_default() {
        let config = Config::default();
        let changed = config.patched(&json!({"rules": {"one_at_a_time": false}}));
        let back = changed
            .unwrap()
            .patched(&json!({"rules": {"one_at_a_time": null}}));
        assert_eq!(back.unwrap(), config);
    }

    #[test]
    fn an_unknown_field_or_a_bad_duration_is_refused() {
        let config = Config::default();
        assert!(config.patched(&json!({"delay": {}})).is_err());
        assert!(
            config
                .patched(&json!({"delays": {"attach": "soon"}}))
                .is_err()
        );
    }
}

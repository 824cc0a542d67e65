//! The configuration of the fake cloud, set with flags and changed at run time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::disk_quota::Quotas;
use super::distribution::DurationDistribution;
use super::duration_text;
use super::fault::Fault;
use super::health::InjectedHealth;
use super::latency::Latency;
use super::stock::OutOfStock;
use super::throttle::Limits;

/// The behavior of the fake cloud. In JSON, durations are strings such as `2s`; delays and
/// latencies also accept `1s..5s` or `lognormal:60ms,0.6`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Durations of asynchronous operations.
    pub delays: Delays,
    pub latency: Latency,
    /// The age of the data that `DescribeDisks` and `DescribeSnapshots` return.
    pub stale: Stale,
    pub throttle: Limits,
    pub faults: Vec<Fault>,
    /// The health of disks, by ID.
    pub disk_health: BTreeMap<String, InjectedHealth>,
    pub out_of_stock: Vec<OutOfStock>,
    /// Actions that RAM denies: writes return 403 `Forbidden.RAM`, lists an empty page.
    pub denied: Vec<String>,
    pub inactive_keys: Vec<String>,
    /// Rules that differ between accounts or that the documents leave open.
    pub rules: Rules,
    pub limits: Quotas,
    /// KMS keys and encryption by default.
    pub keys: Keys,
    /// Conditions that prevent deletion or use of snapshots.
    pub holds: Holds,
    pub metadata: Metadata,
    pub sts: Sts,
}

/// Durations of asynchronous operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Delays {
    /// From `Creating` to `Available`.
    pub create: DurationDistribution,
    /// From `Attaching` to `In_use`.
    pub attach: DurationDistribution,
    /// From `Detaching` to `Available`.
    pub detach: DurationDistribution,
    /// Until a new size is visible; another resize meanwhile returns `LastOrderProcessing`.
    pub resize: DurationDistribution,
    /// Until a change of the category is complete.
    pub modify: DurationDistribution,
    /// Until the point in time of a snapshot is captured (`CreationTime` is empty until then).
    pub cut: DurationDistribution,
    /// Until a snapshot is `accomplished`, from the call on.
    pub snapshot: DurationDistribution,
    /// Until the resources of a deleted disk are released; reads omit it from the call on.
    pub delete: DurationDistribution,
    /// How long deletion of a disk created from a snapshot returns `IncorrectDiskStatus.Initializing`.
    pub load: DurationDistribution,
    /// How long an instance is starting or stopping.
    pub power: DurationDistribution,
    /// How long `AttachDisk` still fails after an instance is described as `Running`.
    pub ready: DurationDistribution,
}

/// The age of reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Stale {
    /// The replication lag; its maximum unless `jumping`.
    pub lag: DurationDistribution,
    /// Draws a lag for each call, so that an old value can follow a new one.
    pub jumping: bool,
    /// The percentage of reads that are stale; the others are up to date. Unset, all are stale.
    pub percent: Option<u8>,
    /// Returns old values of a disk's `Status`, `InstanceId` and `Device` with new values of its
    /// other fields, including `Attachments`.
    pub torn: bool,
    /// The additional lag of the tag index: a list by tags omits new resources and new tags that a
    /// list by ID returns.
    #[serde(with = "duration_text")]
    pub tags: Duration,
}

impl Stale {
    /// How long old rows are kept; zero if no read is stale.
    pub(crate) fn memory(&self) -> Duration {
        self.lag.max().max(self.tags)
    }
}

/// Rules that can be switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// One attach and one detach at a time per instance, as in the real cloud, unless the instance
    /// carries the tag `supportConcurrencyAttach` or `supportConcurrencyDetach`.
    pub serial_attach_detach: bool,
    /// With `serial_attach_detach`: no attach during a detach of the same instance, and vice versa.
    pub exclusive_attach_detach: bool,
    /// Snapshots of a disk that was never attached fail (`IncorrectDiskStatus.NeverAttached`). Off
    /// by default: CSI's conformance suite takes snapshots of volumes that were never published.
    pub never_attached: bool,
    /// Deletion of a missing resource returns 404 instead of success. The documents describe both.
    pub missing_is_error: bool,
    /// Deletion of a snapshot that disks were created from requires `Force`.
    pub snapshot_in_use: bool,
    /// Which one of several documented errors is returned.
    pub alternatives: Alternatives,
    /// The percentage of failed creates that record their `ClientToken`.
    pub token_burn_percent: u8,
    /// How long a `ClientToken` is valid.
    #[serde(with = "duration_text")]
    pub token_memory: Duration,
    /// How long a new resource is missing from every list, and named as missing by every action on it.
    #[serde(with = "duration_text")]
    pub hidden: Duration,
    /// How long a repeated create returns that the first one is still in progress.
    #[serde(with = "duration_text")]
    pub token_in_flight: Duration,
    /// Maximum number of rows, over all pages, of a list filtered by tags or resource group.
    pub filtered_rows: usize,
    /// How long a `NextToken` is valid.
    #[serde(with = "duration_text")]
    pub page_memory: Duration,
    /// How long after a change of its category a disk rejects another one (`DiskInCoolingPeriod`).
    #[serde(with = "duration_text")]
    pub cooling_period: Duration,
    /// `DescribeAvailableResource` reports everything as available.
    pub hide_stockouts: bool,
    /// The age of the stock that `DescribeAvailableResource` returns.
    #[serde(with = "duration_text")]
    pub stock_lag: Duration,
    /// The attach limit of every instance, including the system disk, instead of its type's limit.
    pub disk_quantity: Option<u32>,
    /// Maximum number of calls in the log.
    pub log_length: usize,
}

/// Which one of several documented errors is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Alternatives {
    /// Drawn from the seed.
    #[default]
    Seeded,
    /// Always the first one in the documents.
    First,
    /// Always the last one in the documents.
    Last,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            serial_attach_detach: true,
            exclusive_attach_detach: false,
            never_attached: false,
            missing_is_error: false,
            snapshot_in_use: true,
            alternatives: Alternatives::Seeded,
            token_burn_percent: 0,
            token_memory: Duration::from_hours(24),
            hidden: Duration::ZERO,
            token_in_flight: Duration::ZERO,
            filtered_rows: 1000,
            page_memory: Duration::from_hours(1),
            cooling_period: Duration::ZERO,
            hide_stockouts: false,
            stock_lag: Duration::ZERO,
            disk_quantity: None,
            log_length: 10_000,
        }
    }
}

/// Encryption at rest. A key that is in none of the lists is usable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// Keys that do not exist (`InvalidParameter.KMSKeyId.NotFound`).
    pub missing: Vec<String>,
    /// Disabled keys (`….CMKNotEnabled`).
    pub disabled: Vec<String>,
    /// Keys that the disk service is not authorized to use (`….CMKUnauthorized`).
    pub unauthorized: Vec<String>,
    /// Keys that are not symmetric (`InvalidKMSKeyId.NotSymmetric`).
    pub asymmetric: Vec<String>,
    pub default_encryption: DefaultEncryption,
}

/// The result of creating a disk without `Encrypted`. The documents describe all three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultEncryption {
    /// The disk is not encrypted.
    #[default]
    Off,
    /// The disk is encrypted anyway.
    Upgrade,
    /// The request fails (`InvalidEncrypted.NotMatchDiskDefaultEncryption`).
    Refuse,
}

/// Snapshots, by ID, in a state that no implemented action causes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub struct Holds {
    /// Source of an image: deletion returns `SnapshotCreatedImage`, also with `Force`.
    pub images: Vec<String>,
    /// Locked: deletion returns `InvalidOperation.SnapshotIsLocked`.
    pub locked: Vec<String>,
    /// Archived: creating a disk returns `InvalidSnapshotId.NotReady`.
    pub archived: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// Requests without a token are rejected (`HttpTokens=required`).
    pub token_required: bool,
    /// `PUT api/token` returns 404, as on an old instance.
    pub no_tokens: bool,
    /// Connections end without a response.
    pub unreachable: bool,
    /// Latency of every response.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// Requests per second for each instance; above that, the response is 429.
    pub rate: Option<u32>,
    /// The RAM role of the instances; without one, the response is 404.
    pub role: Option<String>,
    /// Lifetime of role credentials; they rotate after half of it.
    #[serde(with = "duration_text")]
    pub credential_lifetime: Duration,
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
            credential_lifetime: Duration::from_hours(6),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sts {
    /// Connections end without a response.
    pub unreachable: bool,
    /// The error that every call returns.
    pub error: Option<StsError>,
    /// Latency of every response.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// The roles that can be assumed, `acs:ram::UID:role/NAME`.
    pub roles: Vec<String>,
    /// The trusted identity providers, `acs:ram::UID:oidc-provider/NAME`.
    pub oidc_providers: Vec<String>,
    /// The `ExternalId` that `AssumeRole` requires.
    pub external_id: Option<String>,
    /// Lifetime of credentials whatever the request says; zero applies the request's.
    #[serde(with = "duration_text")]
    pub lifetime: Duration,
}

/// An error of the Security Token Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StsError {
    pub status: u16,
    pub code: String,
}

impl Default for Sts {
    fn default() -> Self {
        let own = |kind: &str| vec![format!("acs:ram::1000000000000001:{kind}/diskplugin")];
        Self {
            unreachable: false,
            error: None,
            delay: Duration::ZERO,
            roles: own("role"),
            oidc_providers: own("oidc-provider"),
            external_id: None,
            lifetime: Duration::ZERO,
        }
    }
}

/// The change does not result in a valid configuration.
#[derive(Debug, thiserror::Error)]
#[error("the changed configuration is not valid")]
pub struct InvalidConfig(#[source] serde_json::Error);

impl Config {
    /// This configuration with the changes of a JSON merge patch (RFC 7396).
    ///
    /// # Errors
    /// If the result has an unknown field or an invalid value.
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
                merge(fields.entry(name).or_insert(serde_json::Value::Null), change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_changes_only_the_fields_it_contains() {
        let config = Config::default();
        let patch = json!({"delays": {"attach": "1s..5s"}, "rules": {"never_attached": true}});
        let patched = config.patched(&patch).unwrap();
        assert_eq!(patched.delays.attach, "1s..5s".parse().unwrap());
        assert!(patched.rules.never_attached && patched.rules.serial_attach_detach);
        assert_eq!(patched.metadata, config.metadata);
    }

    #[test]
    fn null_resets_a_field_to_its_default() {
        let config = Config::default();
        let changed = config.patched(&json!({"rules": {"serial_attach_detach": false}}));
        let back = changed
            .unwrap()
            .patched(&json!({"rules": {"serial_attach_detach": null}}));
        assert_eq!(back.unwrap(), config);
    }

    #[test]
    fn an_unknown_field_or_an_invalid_duration_is_rejected() {
        let config = Config::default();
        assert!(config.patched(&json!({"delay": {}})).is_err());
        assert!(config.patched(&json!({"delays": {"attach": "soon"}})).is_err());
    }
}

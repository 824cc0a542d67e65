//! Violations that are planted on purpose, to show that the oracle notices them.

use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::model::{Category, ClientToken, DiskId, Gib, InstanceId, Tags, tag};
use ecs::{Client, CreateDisk, DetachDisk};

use crate::history::Invariant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// ControllerUnpublishVolume succeeds without a call to the cloud.
    UnprovenDetach,
    /// The first creation that succeeds is reported as refused.
    FalseRefusal,
    /// The disk of a living node is detached.
    Detach,
    /// A second disk is bought for a claim.
    SecondDisk,
    /// A disk of a claim that does not exist.
    Leak,
    /// A disk that a claim still needs is deleted.
    Loss,
    /// DeleteVolume never succeeds.
    Stall,
    /// A refused order is repeated ten times a second.
    Repeat,
    /// An error contains the secret key.
    Secret,
}

impl Plant {
    pub const ALL: [Self; 9] = [
        Self::UnprovenDetach,
        Self::FalseRefusal,
        Self::Detach,
        Self::SecondDisk,
        Self::Leak,
        Self::Loss,
        Self::Stall,
        Self::Repeat,
        Self::Secret,
    ];

    /// The invariant that it violates.
    #[must_use]
    pub fn violates(self) -> Invariant {
        match self {
            Self::UnprovenDetach => Invariant::TrueSuccess,
            Self::FalseRefusal => Invariant::TrueFailure,
            Self::Detach => Invariant::OnlyRequested,
            Self::SecondDisk => Invariant::NoDuplicate,
            Self::Leak => Invariant::NoLeak,
            Self::Loss => Invariant::NoLoss,
            Self::Stall => Invariant::Progress,
            Self::Repeat => Invariant::Budget,
            Self::Secret => Invariant::NoSecret,
        }
    }

    /// What the process sends in addition once a volume is published.
    pub(crate) async fn send(self, client: &Client, name: &str, volume: &str, node: &str) {
        let deadline = || Deadline::after(Duration::from_secs(30));
        let (Ok(disk), Ok(instance)) = (volume.parse::<DiskId>(), node.parse::<InstanceId>()) else {
            return;
        };
        let detach = DetachDisk {
            disk: disk.clone(),
            instance,
            delete_with_instance: false,
        };
        // Whether a call succeeds is for the oracle to notice.
        match self {
            Self::Detach => drop(client.detach_disk(deadline(), &detach).await),
            Self::SecondDisk => drop(client.create_disk(deadline(), &disk_of(name, "second")).await),
            Self::Leak => drop(client.create_disk(deadline(), &disk_of("pvc-unknown", "leak")).await),
            Self::Loss => {
                let _ = client.detach_disk(deadline(), &detach).await;
                tokio::time::sleep(Duration::from_secs(30)).await;
                let _ = client.delete_disk(deadline(), &disk).await;
            }
            Self::Repeat => {
                for _ in 0..100 {
                    let missing = DetachDisk {
                        disk: "d-missing".parse().unwrap_or_else(|_| disk.clone()),
                        ..detach.clone()
                    };
                    let _ = client.detach_disk(deadline(), &missing).await;
                }
            }
            Self::UnprovenDetach | Self::FalseRefusal | Self::Stall | Self::Secret => {}
        }
    }
}

fn disk_of(name: &str, token: &str) -> CreateDisk {
    let tags = [(tag::CLUSTER, "test"), (tag::CSI_NAME, name)];
    CreateDisk {
        zone: "cn-beijing-a".parse().ok(),
        category: Category::CloudEssd,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(20),
        name: name.to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags: Tags::from(tags.map(|(key, value)| (key.to_owned(), value.to_owned()))),
        token: ClientToken::derive("CreateDisk", [name, token]),
    }
}

//! Calls of a test to the fake cloud, besides those of the driver.

use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::{Clock, Deadline, SystemClock};
use diskplugin::model::{Category, ClientToken, DiskId, Gib, InstanceId, Tags, tag};
use ecs::credential::Credentials;
use ecs::sign::Scheme;
use ecs::{AttachDisk, Client, CreateDisk, CreateSnapshot, DetachDisk, ServerClock, Settings};

use super::fake::{Fake, KEY, SECRET, ZONE};

/// A client with the access key of the fake cloud.
pub(crate) fn client(fake: &Fake) -> Client {
    client_at(&fake.url, Scheme::V1, Arc::new(SystemClock))
}

/// The same over HTTP at this URL.
pub(crate) fn client_at(url: &str, scheme: Scheme, clock: Arc<dyn Clock>) -> Client {
    let client = Client::new(Settings {
        server: url.parse().expect("an endpoint"),
        region: "cn-beijing".parse().expect("a region"),
        scheme,
        credentials: Arc::new(Credentials::new(KEY, SECRET)),
        clock: ServerClock::new(clock),
    });
    client.expect("HTTP needs no certificates")
}

/// A request for a 20 GiB ESSD in the first zone; the name determines the token.
pub(crate) fn essd(name: &str) -> CreateDisk {
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
        tags: Tags::new(),
        token: ClientToken::derive("CreateDisk", [name]),
    }
}

pub(crate) fn attach_to(disk: &DiskId, instance: &InstanceId) -> AttachDisk {
    AttachDisk {
        disk: disk.clone(),
        instance: instance.clone(),
        force: false,
        delete_with_instance: false,
    }
}

pub(crate) fn detach_from(disk: &DiskId, instance: &InstanceId) -> DetachDisk {
    DetachDisk {
        disk: disk.clone(),
        instance: instance.clone(),
        delete_with_instance: false,
    }
}

/// A request for a snapshot; the name determines the token.
pub(crate) fn snapshot_of(disk: &DiskId, name: &str) -> CreateSnapshot {
    CreateSnapshot {
        disk: disk.clone(),
        name: name.to_owned(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        token: ClientToken::derive("CreateSnapshot", [name]),
    }
}

/// A request for a disk with these tags in the zone of [`Fake`].
pub(crate) fn disk(tags: Tags, token: ClientToken) -> CreateDisk {
    CreateDisk {
        zone: ZONE.parse().ok(),
        tags,
        token,
        ..essd("disk")
    }
}

/// Creates disks of the cluster `test` at the given interval.
pub(crate) async fn create_disks(ecs: &Client, count: usize, interval: Duration) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        let request = CreateDisk {
            tags: Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]),
            ..essd(&format!("disk-{n}"))
        };
        let created = ecs
            .create_disk(Deadline::after(Duration::from_secs(3600)), &request)
            .await;
        ids.push(created.expect("the disk is created").to_string());
        tokio::time::sleep(interval).await;
    }
    ids
}

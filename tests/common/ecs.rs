//! Calls of a test to the fake cloud, besides those of the driver.

use std::sync::Arc;

use diskplugin::base::SystemClock;
use diskplugin::model::{Category, ClientToken, Gib, Tags};
use ecs::credential::Credentials;
use ecs::sign::Scheme;
use ecs::{Client, CreateDisk, ServerClock, Settings};

use super::fake::{Fake, KEY, SECRET, ZONE};

/// A client with the access key of the fake cloud.
pub(crate) fn client(fake: &Fake) -> Client {
    let client = Client::new(Settings {
        server: fake.url.parse().expect("an endpoint"),
        region: "cn-beijing".parse().expect("a region"),
        scheme: Scheme::V1,
        credentials: Arc::new(Credentials::new(KEY, SECRET)),
        clock: ServerClock::new(Arc::new(SystemClock)),
    });
    client.expect("HTTP needs no certificates")
}

/// A small disk with these tags.
pub(crate) fn disk(tags: Tags, token: ClientToken) -> CreateDisk {
    CreateDisk {
        zone: ZONE.parse().ok(),
        category: Category::CloudEssd,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(20),
        name: "disk".to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags,
        token,
    }
}

//! Lists the disks of a region: those of an account if `ACCESS_KEY_ID`, `ACCESS_KEY_SECRET` and `REGION` are set, and
//! otherwise those of a fake cloud.
//!
//! `cargo run --package ecs --example list_disks`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ecs::base::{Deadline, SystemClock};
use ecs::credential::{Credentials, Environment};
use ecs::endpoint::{Network, ecs_url};
use ecs::model::{Category, ClientToken, Gib, RegionId, Tags};
use ecs::sign::Scheme;
use ecs::{Client, CreateDisk, DescribeDisks, ServerClock, Settings};
use fake_ecs::{Cloud, Options};
use wiremock::MockServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let environment = Environment::read(|name| std::env::var(name).ok());
    if environment.is_set() {
        let region =
            std::env::var("REGION").map_err(|_| "set REGION, or unset the access key to use the fake cloud")?;
        let region: RegionId = region.parse()?;
        let client = Client::new(Settings {
            server: ecs_url(&region, Network::Public).parse()?,
            region,
            scheme: Scheme::V3,
            credentials: Arc::new(environment),
            clock: ServerClock::new(Arc::new(SystemClock)),
        })?;
        return list(&client).await;
    }
    let cloud = Cloud::in_memory(
        &Options::from_flags(["--nodes=i-one"])?,
        Arc::new(fake_ecs::SystemClock),
    );
    let server = MockServer::start().await;
    cloud.mount(&server).await;
    let (id, secret) = cloud.access_key();
    let client = Client::new(Settings {
        server: server.uri().parse()?,
        region: cloud.region().parse()?,
        scheme: Scheme::V3,
        credentials: Arc::new(Credentials::new(id, secret)),
        clock: ServerClock::new(Arc::new(SystemClock)),
    })?;
    let disk = CreateDisk {
        zone: Some(Options::from_flags([])?.zones()[0].parse()?),
        category: Category::CloudEssd,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(20),
        name: "example".to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags: Tags::new(),
        token: ClientToken::derive("CreateDisk", ["example"]),
    };
    client.create_disk(deadline(), &disk).await?;
    list(&client).await
}

async fn list(client: &Client) -> Result<(), Box<dyn Error>> {
    let mut query = DescribeDisks::default();
    loop {
        let page = client.describe_disks(deadline(), &query).await?;
        for disk in page.rows {
            println!("{} {} {} {}", disk.id, disk.category, disk.size, disk.status);
        }
        query.next = page.next;
        if query.next.is_none() {
            return Ok(());
        }
    }
}

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

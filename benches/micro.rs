//! The CPU time of the controller for a call, without the network: `cargo bench --bench micro`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::{Deadline, SystemClock};
use diskplugin::disk::{AllowedZone, NewDisk, candidates};
use diskplugin::model::{Bytes, Category, Disk, DiskId, PerformanceLevel, SizeRange, Tags, ZoneId};
use divan::{Bencher, black_box};
use ecs::credential::Credentials;
use ecs::sign::{API_VERSION, Scheme, UnsignedRequest};
use ecs::wire::params::{Params, params};
use ecs::wire::read;
use ecs::{CreateDisk, DescribeDisks, Page};
use fake_ecs::options::{DEFAULT_KEY, DEFAULT_SECRET};
use fake_ecs::{Cloud, Exchange, Options};
use jiff::Timestamp;

use common::ecs::essd;
use common::memory_cloud::client;

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "helpers of tests, which use the rest")]
mod common;

/// The maximum of one `DescribeDisks`.
const DISKS: usize = 100;
const HOST: &str = "ecs.example";

fn main() {
    divan::main();
}

fn attempt<'a>(
    params: &'a BTreeMap<String, String>,
    credentials: &'a Credentials,
    time: Timestamp,
) -> UnsignedRequest<'a> {
    UnsignedRequest {
        action: "DescribeDisks",
        version: API_VERSION,
        params,
        host: HOST,
        credentials,
        time,
        nonce: "0b1bcb0b-6c5c-4c4c-8c0b-2b3e5f1b7c9d",
    }
}

/// Signs a description of 100 disks, the longest request.
#[divan::bench(args = [Scheme::V1, Scheme::V3])]
fn sign(bencher: Bencher<'_, '_>, scheme: Scheme) {
    let ids = (0..DISKS).map(|n| format!("d-bp1{n:017}").parse::<DiskId>());
    let params = describe(ids.collect::<Result<_, _>>().expect("valid IDs"));
    let credentials = Credentials::new(DEFAULT_KEY, DEFAULT_SECRET);
    let attempt = attempt(&params, &credentials, Timestamp::UNIX_EPOCH);
    bencher.bench(|| scheme.sign(black_box(&attempt)));
}

/// Parses the description of 100 disks.
#[divan::bench]
fn parse_describe_disks(bencher: Bencher<'_, '_>) {
    let body = response();
    bencher.bench(|| {
        let page: Page<Disk> = read(black_box(&body)).expect("valid JSON");
        assert_eq!(page.rows.len(), DISKS);
        page
    });
}

/// Plans a disk for which every category, level and zone is accepted.
#[divan::bench]
fn plan(bencher: Bencher<'_, '_>) {
    let zones = ["a", "b", "c", "d", "e", "f"].map(|zone| format!("cn-beijing-{zone}").parse());
    let allowed = zones
        .into_iter()
        .map(|zone| zone.map(|zone: ZoneId| AllowedZone::from(zone)));
    let new = NewDisk {
        deletion_snapshot_days: None,
        name: "pvc-1".to_owned(),
        size: SizeRange {
            required: Some(Bytes(100 << 30)),
            limit: None,
        },
        categories: vec![
            Category::CloudAuto,
            Category::CloudEssd,
            Category::CloudSsd,
            Category::CloudEfficiency,
        ],
        levels: vec![PerformanceLevel::Pl0, PerformanceLevel::Pl1, PerformanceLevel::Pl2],
        zones: allowed.collect::<Result<_, _>>().expect("valid zones"),
        snapshot: None,
        clone_of: None,
        encrypted: false,
        kms_key: None,
        provisioned_iops: 0,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        tags: Tags::new(),
        created_for: Tags::new(),
    };
    bencher.bench(|| candidates::select_candidates(black_box(&new)).expect("a valid disk"));
}

fn describe(ids: Vec<DiskId>) -> Params {
    params(&DescribeDisks {
        ids: Some(ids),
        page_size: Some(100),
        ..DescribeDisks::default()
    })
}

/// The body of the fake cloud's response for 100 disks.
fn response() -> Vec<u8> {
    let options = Options::default();
    let cloud = Cloud::in_memory(&options, Arc::new(fake_ecs::SystemClock));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let ids: Vec<DiskId> = runtime.block_on(async {
        let mut ids = Vec::new();
        for number in 0..DISKS {
            let request = disk(&format!("pvc-{number}"));
            let deadline = Deadline::after(Duration::from_secs(60));
            let created = client(&cloud).create_disk(deadline, &request).await;
            ids.push(created.expect("a disk is created"));
        }
        ids
    });
    let mut params = describe(ids);
    params.insert("RegionId".to_owned(), options.region.clone());
    let credentials = Credentials::new(DEFAULT_KEY, DEFAULT_SECRET);
    let now = diskplugin::base::Clock::now(&SystemClock);
    let signed = Scheme::V1.sign(&attempt(&params, &credentials, now));
    let mut request = http::Request::post(format!("http://{HOST}/?{}", signed.query));
    for (name, value) in signed.headers {
        request = request.header(name, value);
    }
    match cloud.http().respond(&request.body(Vec::new()).expect("a request")) {
        Exchange::Response(response) if response.status == 200 => response.body,
        other => panic!("{other:?}"),
    }
}

/// As the driver creates it.
fn disk(name: &str) -> CreateDisk {
    CreateDisk {
        tags: Tags::from([
            ("diskplugin.csi.example/cluster".to_owned(), "bench".to_owned()),
            ("diskplugin.csi.example/volume".to_owned(), name.to_owned()),
        ]),
        ..essd(name)
    }
}

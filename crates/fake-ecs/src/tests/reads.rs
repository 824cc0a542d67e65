//! Lists: paging, stale and torn reads, lagging replicas.

use serde_json::json;

use super::kit::{NODE, Sandbox, essd, region};
use crate::action::Action;

#[test]
fn the_page_size_defaults_to_ten_rows_and_is_clamped() {
    let mut sandbox = Sandbox::new(&[]);
    for _ in 0..30 {
        sandbox.create(essd());
    }
    let page = sandbox.disks(region());
    assert_eq!((page.rows.len(), page.total, page.next), (10, 30, None));
    for (asked, got) in [("1", 10), ("12", 12), ("9999", 30)] {
        let page = sandbox.disks(region().with("MaxResults", asked));
        assert_eq!(page.rows.len(), got, "{asked}");
    }
    let page = sandbox.disks(region().with("PageSize", "100").with("PageNumber", "1"));
    assert_eq!(page.rows.len(), 30);
}

#[test]
fn pages_by_token_contain_every_row_once_while_rows_are_added_and_removed() {
    let mut sandbox = Sandbox::new(&[]);
    let disks: Vec<String> = (0..25).map(|_| sandbox.create(essd())).collect();
    let query = || region().with("MaxResults", "10");
    let first = sandbox.disks(query());
    let seen: Vec<String> = first.rows.iter().map(|row| row.id.clone()).collect();
    let unseen = disks.iter().find(|id| !seen.contains(id)).unwrap();
    sandbox.delete(unseen);
    sandbox.delete(&seen[0]);
    let second = sandbox.disks(query().with("NextToken", first.next.unwrap()));
    let third = sandbox.disks(query().with("NextToken", second.next.unwrap()));
    assert_eq!(third.next, None);
    let rest = second.rows.len() + third.rows.len();
    assert_eq!(rest, 14);
    assert!(second.rows.iter().all(|row| !seen.contains(&row.id)));
}

#[test]
fn a_page_token_expires_and_is_valid_only_for_its_query() {
    let mut sandbox = Sandbox::new(&[]);
    for _ in 0..11 {
        sandbox.create(essd());
    }
    let query = || region().with("MaxResults", "10");
    let token = sandbox.disks(query()).next.unwrap();
    let other = query().with("NextToken", &token).with("Category", "cloud_essd");
    assert_eq!(sandbox.outcome(Action::DescribeDisks, other), "400 InvalidParameter");
    sandbox.pass(3600);
    let late = query().with("NextToken", token);
    assert_eq!(sandbox.outcome(Action::DescribeDisks, late), "400 InvalidParameter");
}

#[test]
fn an_empty_list_of_ids_matches_nothing_and_unknown_ids_are_omitted() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.disks(region().with("DiskIds", "[]")).rows.len(), 0);
    let both = format!(r#"["{disk}","d-none"]"#);
    assert_eq!(sandbox.disks(region().with("DiskIds", both)).rows.len(), 1);
}

#[test]
fn reads_have_the_age_of_the_replica() {
    let mut sandbox = Sandbox::new(&["--stale=2s"]);
    let disk = sandbox.create(essd());
    assert_eq!(sandbox.status(&disk), "gone");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "Available");
    sandbox.attach(&disk, NODE);
    assert_eq!(sandbox.status(&disk), "Available");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "In_use");
    sandbox.detach(&disk, NODE);
    sandbox.pass(2);
    sandbox.delete(&disk);
    assert_eq!(sandbox.status(&disk), "Available");
    sandbox.pass(2);
    assert_eq!(sandbox.status(&disk), "gone");
}

#[test]
fn a_torn_read_returns_new_attachments_with_an_old_status() {
    let mut sandbox = Sandbox::new(&["--stale=5s"]);
    sandbox.configure(&json!({"stale": {"torn": true}}));
    let disk = sandbox.create(essd());
    sandbox.pass(60);
    sandbox.attach(&disk, NODE);
    let rows = sandbox.disks(region()).rows;
    assert_eq!(rows[0].status(), "Available");
    assert_eq!(rows[0].shown().next().unwrap().instance, NODE);
    sandbox.pass(5);
    assert_eq!(sandbox.status(&disk), "In_use");
}

#[test]
fn a_torn_read_returns_another_instance_id_than_its_attachments() {
    let mut sandbox = Sandbox::new(&["--stale=5s"]);
    sandbox.configure(&json!({"stale": {"torn": true}}));
    let disk = sandbox.create(essd());
    sandbox.pass(10);
    sandbox.attach(&disk, NODE);
    let row = sandbox.disks(region()).rows.remove(0);
    assert_eq!((row.status(), row.holder()), ("Available", None));
    assert_eq!(row.shown().next().map(|a| a.instance.as_str()), Some(NODE));
    sandbox.pass(10);
    sandbox.detach(&disk, NODE);
    let row = sandbox.disks(region()).rows.remove(0);
    assert_eq!(row.status(), "In_use");
    assert_eq!(row.holder().map(|a| a.instance.as_str()), Some(NODE));
    assert_eq!(row.shown().count(), 0);
}

#[test]
fn the_total_of_a_page_by_token_is_meaningless() {
    let mut sandbox = Sandbox::new(&[]);
    sandbox.create(essd());
    let mut total = |name| sandbox.disks(region().with(name, "10")).total;
    assert_eq!(total("PageSize"), 1);
    assert!((0..9).map(|_| total("MaxResults")).any(|total| total != 1));
}

#[test]
fn a_hundred_thousand_disks_are_created_and_described() {
    const MANY: usize = 100_000;
    let mut sandbox = Sandbox::new(&["--create-delay=1s..5s"]);
    let made: Vec<String> = (0..MANY).map(|_| sandbox.create(essd())).collect();
    sandbox.pass(5);
    for ids in made.chunks(100) {
        let ids = serde_json::to_string(ids).unwrap();
        let query = region().with("DiskIds", ids).with("MaxResults", "100");
        let rows = sandbox.disks(query).rows;
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row.status() == "Available"));
    }
    let (mut seen, mut token) = (0, None);
    loop {
        let query = region().with("MaxResults", "500");
        let page = sandbox.disks(query.with("NextToken", token.unwrap_or_default()));
        seen += page.rows.len();
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(seen, MANY);
}

#[test]
fn a_jumping_replica_returns_old_values_after_new_ones() {
    let mut sandbox = Sandbox::new(&["--stale=0s..10s", "--stale-jumping"]);
    let disk = sandbox.create(essd());
    sandbox.pass(60);
    sandbox.attach(&disk, NODE);
    sandbox.pass(5);
    let seen: Vec<String> = (0..40).map(|_| sandbox.status(&disk)).collect();
    let backwards = seen.windows(2).any(|w| w[0] == "In_use" && w[1] == "Available");
    assert!(backwards, "{seen:?}");
}

//! Creating when answers are lost, tokens are used up and reads are old: always one disk in the end.

use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::base::Deadline;
use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::Category;

use crate::kit::{Setup, available, gib, minutes, seconds, text, new_disk, zone};

fn losses() -> Vec<Value> {
    vec![
        json!("reset-before"),
        json!("reset-after"),
        json!("truncated"),
        json!("empty"),
        json!("html"),
        json!("internal-error"),
        json!("internal-error-after"),
        json!("service-unavailable"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unclear_and_the_repeat_ends_with_one_disk() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for loss in losses() {
            let setup = Setup::new(&["--create-delay=1s", "--stale=2s"]);
            setup.fault("CreateDisk", &loss);
            let lost = setup
                .disks
                .provisioner
                .create(minutes(1), &new)
                .await
                .unwrap_err();
            assert_eq!(
                lost.failure_kind(),
                FailureKind::Unavailable,
                "{loss}: {lost:?}"
            );
            let disk = setup.create(&new).await;
            assert_eq!(setup.only_disk(), disk.id, "{loss}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_repeats_by_itself_hides_every_loss() {
    for loss in losses() {
        let setup = Setup::with_retries(&["--create-delay=1s"]);
        setup.faults("CreateDisk", 3, &loss);
        let disk = setup.create(&available("pvc-1")).await;
        assert_eq!(setup.only_disk(), disk.id, "{loss}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_followed_up_where_it_was_lost_though_a_better_category_is_back() {
    let setup = Setup::new(&["--stale=2s", "--out-of-stock=*/cloud_efficiency"]);
    setup.faults("CreateDisk", 2, &json!("reset-after"));
    setup.configure(
        &json!({"faults": [{"action": "CreateDisk", "from": 2, "kind": "reset-after"}]}),
    );
    setup
        .disks
        .provisioner
        .create(minutes(1), &available("pvc-1"))
        .await
        .unwrap_err();
    let made = setup.only_disk();
    setup.configure(&json!({"out_of_stock": []}));
    // At once: the tags do not show it yet.
    let disk = setup.create(&available("pvc-1")).await;
    assert_eq!((disk.id, setup.only_disk()), (made.clone(), made));
}

#[tokio::test(start_paused = true)]
async fn a_new_disk_that_old_reads_do_not_show_is_waited_for() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for flags in [
            ["--stale=2s", "--create-delay=0s"],
            ["--stale=0s..2s", "--stale-jumping"],
        ] {
            let setup = Setup::new(&flags);
            let disk = setup.create(&new).await;
            let again = setup
                .restarted()
                .provisioner
                .create(minutes(1), &new)
                .await
                .unwrap();
            assert_eq!([&disk.id, &again.id], [&setup.only_disk(); 2]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_request_is_refused_also_while_the_tags_lag() {
    let setup = Setup::new(&["--stale=2s"]);
    setup.fault("CreateDisk", &json!("reset-after"));
    setup
        .disks
        .provisioner
        .create(minutes(1), &new_disk("pvc-1"))
        .await
        .unwrap_err();
    let made = setup.only_disk();
    let other = NewDisk {
        size: gib(40),
        ..new_disk("pvc-1")
    };
    let refused = setup
        .disks
        .provisioner
        .create(minutes(1), &other)
        .await
        .unwrap_err();
    assert!(matches!(refused, Error::Exists { .. }), "{refused:?}");
    assert_eq!(setup.only_disk(), made);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_failed_calls_used_up_does_not_stand_in_the_way() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&["--out-of-stock=*/*"]);
        setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
        for _ in 0..3 {
            let refused = setup
                .disks
                .provisioner
                .create(minutes(1), &new)
                .await
                .unwrap_err();
            assert_eq!(
                refused.failure_kind(),
                FailureKind::ResourceExhausted,
                "{refused:?}"
            );
        }
        setup.configure(&json!({"out_of_stock": []}));
        // A process that knows nothing of the failures needs a few calls to get past them.
        let fresh = setup.restarted();
        let mut made = None;
        for _ in 0..5 {
            made = made.or(fresh.provisioner.create(minutes(1), &new).await.ok());
        }
        let made = made.expect("there is stock");
        for disks in [&setup.disks, &fresh, &setup.restarted()] {
            assert_eq!(
                disks.provisioner.create(minutes(1), &new).await.unwrap().id,
                made.id
            );
        }
        assert_eq!(setup.only_disk(), made.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_a_refused_call_succeeds_as_soon_as_there_is_stock() {
    for burned in [0, 100] {
        let setup = Setup::new(&["--out-of-stock=*/*"]);
        setup.configure(&json!({"rules": {"token_burn_percent": burned}}));
        for _ in 0..4 {
            setup
                .disks
                .provisioner
                .create(minutes(1), &new_disk("pvc-1"))
                .await
                .unwrap_err();
        }
        setup.configure(&json!({"out_of_stock": []}));
        let disk = setup.create(&new_disk("pvc-1")).await;
        assert_eq!(setup.only_disk(), disk.id, "{burned} %");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_another_failed_request_used_up_ends_with_one_disk() {
    let setup = Setup::new(&["--out-of-stock=*/*"]);
    setup.configure(&json!({"rules": {"token_burn_percent": 100}}));
    let larger = NewDisk {
        size: gib(40),
        ..new_disk("pvc-1")
    };
    setup
        .disks
        .provisioner
        .create(minutes(1), &larger)
        .await
        .unwrap_err();
    setup.configure(&json!({"out_of_stock": []}));
    let disk = setup.create(&new_disk("pvc-1")).await;
    let again = setup
        .restarted()
        .provisioner
        .create(minutes(1), &new_disk("pvc-1"))
        .await
        .unwrap();
    assert_eq!([&disk.id, &again.id], [&setup.only_disk(); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_first_call_in_flight_is_repeated_until_it_is_over() {
    let setup = Setup::with_retries(&[]);
    setup.configure(&json!({"rules": {"token_in_flight": "3s"}}));
    setup.fault("CreateDisk", &json!("reset-after"));
    let disk = setup.create(&new_disk("pvc-1")).await;
    assert_eq!(setup.only_disk(), disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_the_cloud_loses_while_it_is_made_is_made_again() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--create-delay=2s", stale]);
            setup.fault("CreateDisk", &json!("fails-later"));
            let disk = setup.create(&new).await;
            assert_eq!(setup.only_disk(), disk.id);
            let again = setup
                .restarted()
                .provisioner
                .create(minutes(1), &new)
                .await
                .unwrap();
            assert_eq!((again.id, setup.only_disk()), (disk.id.clone(), disk.id));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_whose_disk_was_deleted_gets_a_new_disk_each_time() {
    for new in [new_disk("pvc-1"), available("pvc-1")] {
        let setup = Setup::new(&[]);
        for _ in 0..3 {
            let disk = setup.create(&new).await;
            assert_eq!(setup.only_disk(), disk.id);
            setup.delete(&disk.id).await;
        }
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_vanished_disk_is_made_again_also_by_calls_too_short_to_believe_it_gone() {
    for deleted in [true, false] {
        let setup = Setup::new(&["--create-delay=12s"]);
        if deleted {
            let disk = setup.disk("pvc-1").await;
            setup.delete(&disk).await;
        } else {
            setup.fault("CreateDisk", &json!("fails-later"));
        }
        let mut tries = 0;
        let disk = loop {
            let soon = Deadline::after(Duration::from_millis(9750));
            match setup.disks.provisioner.create(soon, &new_disk("pvc-1")).await {
                Ok(disk) => break disk.id,
                Err(error) => assert_eq!(
                    error.failure_kind(),
                    FailureKind::DeadlineExceeded,
                    "{}",
                    text(&error)
                ),
            }
            tries += 1;
            assert!(tries < 6);
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        assert_eq!(setup.only_disk(), disk);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_missed_long_ago_is_not_given_up_for_one_look_that_does_not_show_it() {
    let setup = Setup::new(&["--stale=2s"]);
    let late = setup
        .disks
        .provisioner
        .create(seconds(1), &new_disk("pvc-1"))
        .await;
    assert_eq!(
        late.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    let made = setup.only_disk();
    tokio::time::sleep(Duration::from_secs(60)).await;
    // The description goes back to before the disk for a moment.
    setup.configure(&json!({"stale": {"lag": "70s"}}));
    let new = new_disk("pvc-1");
    let (found, ()) = tokio::join!(setup.disks.provisioner.create(minutes(1), &new), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        setup.configure(&json!({"stale": {"lag": "0s"}}));
    });
    assert_eq!((found.unwrap().id, setup.only_disk()), (made.clone(), made));
}

#[tokio::test(start_paused = true)]
async fn the_disk_of_a_list_is_known_again_when_the_list_has_shrunk_or_turned() {
    let setup = Setup::new(&["--out-of-stock=*/cloud_ssd"]);
    let both = NewDisk {
        categories: vec![Category::CloudSsd, Category::CloudEssd],
        places: vec![zone("a").into(), zone("b").into()],
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&both).await;
    setup.configure(&json!({"out_of_stock": []}));
    let turned = NewDisk {
        places: vec![zone("b").into(), zone("a").into()],
        ..both
    };
    for new in [turned, new_disk("pvc-1")] {
        let found = setup.restarted().provisioner.create(minutes(1), &new).await;
        let found = found.unwrap_or_else(|error| panic!("{}", text(&error)));
        assert_eq!(found.id, disk.id);
        assert_eq!(setup.only_disk(), disk.id, "{new:?}");
    }
}

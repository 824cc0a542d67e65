//! Cost of hung reads, out-of-stock claims and unusual durations.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn hung_and_failed_reads_delay_few_volumes() {
    for (percent, kind) in [
        (0, json!("hang")),
        (10, json!("hang")),
        (30, json!("hang")),
        (30, json!("internal-error")),
        (10, json!({"delay-after": "30s"})),
    ] {
        let setup = Setup::with_nodes(60, &["--create-delay=500ms", "--attach-delay=2s", "--detach-delay=2s"]);
        setup.configure(&json!({"rules": {"disk_quantity": 100_000}}));
        setup.configure(&json!({"faults": [{"action": "DescribeDisks", "percent": percent, "kind": kind}]}));
        let lifecycle = |setup: Setup, n| async move {
            let start = Instant::now();
            let disk = setup.disk(&format!("pvc-{n}")).await;
            let created = start.elapsed();
            let node = format!("i-{}", n % 60).parse().unwrap();
            setup.try_attach(minutes(5), &disk, &node).await.unwrap();
            (created, start.elapsed())
        };
        let mut took = setup.each(0..300, lifecycle).await;
        took.sort_by_key(|(_, all)| *all);
        let (median, last) = (took[150].1, took[299].1);
        let slow = took.iter().map(|(created, _)| *created).max().unwrap();
        let describes = setup.calls("DescribeDisks");
        let bound = Duration::from_millis;
        // With 30 % faults, several consecutive ones may hit the same call.
        let (max_last, max_describes) = if percent > 10 { (17_000, 75) } else { (12_500, 45) };
        assert!(
            median < bound(8500) && last < bound(max_last) && slow < bound(3000) && describes < max_describes,
            "{percent} % {kind}: median {median:?}, last {last:?}, slowest creation {slow:?}, {describes} describes"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn ten_retries_of_an_out_of_stock_claim_cost_few_calls() {
    for burn in [0, 100] {
        for (name, categories, places) in [
            ("one pair", 1, vec!["a"]),
            ("two zones, four categories", 4, vec!["a", "b"]),
        ] {
            let setup = Setup::new(&["--out-of-stock=*/*"]);
            setup.configure(&json!({"rules": {"token_burn_percent": burn}}));
            sleep(30).await;
            let new = NewDisk {
                categories: Category::CREATABLE.iter().take(categories).cloned().collect(),
                zones: places.iter().map(|letter| zone(letter).into()).collect(),
                ..new_disk("pvc-1")
            };
            setup.cloud.clear_calls();
            for _ in 0..10 {
                let _ = setup.try_create(seconds(10), &new).await;
                sleep(60).await;
            }
            let calls: u64 = setup.cloud.counts().values().map(|count| count.calls).sum();
            assert!(calls <= 70, "{name}, burn {burn}: {:?}", setup.cloud.counts());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_far_slower_than_previous_ones_is_observed_in_time() {
    // Calls for operations of more than 25 s end before them.
    for (learned, then) in [("1s", 20), ("1s", 22), ("200ms", 10)] {
        let setup = Setup::new(&[&format!("--attach-delay={learned}"), "--detach-delay=1s"]);
        let disk = setup.disk("pvc-1").await;
        for _ in 0..40 {
            setup.try_attach(minutes(5), &disk, &node_one()).await.unwrap();
            setup.try_detach(minutes(5), &disk, &node_one()).await.unwrap();
        }
        setup.configure(&json!({"delays": {"attach": format!("{then}s")}}));
        let mut late = Vec::new();
        for _ in 0..5 {
            let (start, before) = (Instant::now(), setup.calls("DescribeDisks"));
            setup.try_attach(minutes(9), &disk, &node_one()).await.unwrap();
            late.push((
                start.elapsed() - Duration::from_secs(then),
                setup.calls("DescribeDisks") - before,
            ));
            setup.try_detach(minutes(5), &disk, &node_one()).await.unwrap();
        }
        for (call, (late, describes)) in late.into_iter().enumerate() {
            let (max_late, max_describes) = if call == 0 { (2500, 60) } else { (700, 15) };
            assert!(
                late < Duration::from_millis(max_late) && describes < max_describes,
                "learned {learned}, then {then} s: late by {late:?} after {describes} describes"
            );
        }
    }
}

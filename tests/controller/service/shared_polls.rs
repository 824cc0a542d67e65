//! Describe calls that a hundred concurrent calls share.

use crate::service::kit::*;

#[tokio::test(start_paused = true)]
async fn a_throttled_poll_fails_none_of_a_hundred_waiting_calls() {
    let stage = Stage::new(&["--create-delay=20s"]);
    stage.configure(&json!({"rules": {"disk_quantity": 1000}}));
    let restarted = stage.restarted();
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let (restarted, new) = (restarted.clone(), new_volume(&format!("pvc-{number}")));
        calls.spawn(async move { restarted.create(new).await });
    }
    sleep(5).await;
    let looks = stage.calls("DescribeDisks");
    let throttled = error_code(400, "Throttling.Api");
    stage.configure(&json!({"faults": [
        {"action": "DescribeDisks", "from": 1, "times": 1, "kind": throttled}
    ]}));
    let made = calls.join_all().await;
    let failed: Vec<_> = made.iter().filter_map(|made| made.as_ref().err()).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(stage.calls("DescribeDisks") > looks);
    let refused = stage.cloud.calls().into_iter();
    let refused = refused.filter(|call| call.code.as_deref() == Some("Throttling.Api"));
    assert_eq!(refused.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_concurrent_calls_share_describe_calls() {
    let stage = Stage::new(&[]);
    stage.configure(&json!({"rules": {"disk_quantity": 1000}}));
    let volumes = stage.volumes(100).await;
    let restarted = stage.restarted();
    stage.cloud.clear_calls();
    let mut calls = JoinSet::new();
    for volume in volumes.clone() {
        let restarted = restarted.clone();
        calls.spawn(async move {
            restarted
                .validate(&volume, vec![mount()])
                .await
                .unwrap()
                .confirmed
                .is_some()
        });
    }
    assert!(calls.join_all().await.into_iter().all(|confirmed| confirmed));
    assert!(stage.calls("DescribeDisks") <= 2, "{}", stage.calls("DescribeDisks"));
    stage.cloud.clear_calls();
    let mut calls = JoinSet::new();
    for volume in volumes {
        let restarted = restarted.clone();
        calls.spawn(async move { restarted.expand(&volume, 20).await.unwrap().0 });
    }
    assert!(calls.join_all().await.into_iter().all(|gib| gib == 20));
    assert!(stage.calls("DescribeDisks") <= 2, "{}", stage.calls("DescribeDisks"));
}

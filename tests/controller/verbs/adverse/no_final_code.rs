//! No final error code while a disk with the requested name may exist.

use crate::verbs::kit::*;

/// One process with lost, canceled, hidden and rejected calls.
#[tokio::test(start_paused = true)]
async fn create_returns_no_final_code_while_the_disk_exists_and_ends_with_one_disk() {
    let mut wrong = Vec::new();
    for seed in 0..300_u64 {
        let flag = format!("--seed={seed}");
        let flags = [flag.as_str(), "--create-delay=1s"];
        let setup = match seed % 5 {
            0 | 1 => Setup::without_canary(&flags),
            _ => Setup::new(&flags),
        };
        if seed % 3 != 0 {
            setup.disk("other").await;
        }
        let others = setup.rows().len();
        sleep(20).await;
        // The client's retries pass few losses, but not most of them.
        let lost = if seed % 4 < 2 { 15 } else { 70 };
        setup.configure(&json!({
            "stale": {"lag": "0s..2s", "jumping": true, "tags": "2s"},
            "rules": {"token_burn_percent": 40},
            "faults": [
                percent("CreateDisk", lost, &json!("reset-after")),
                percent("CreateDisk", 10, &json!("reset-before")),
                percent("CreateDisk", 15, &error_code(403, "OperationDenied.NoStock")),
                percent("CreateDisk", 10, &error_code(403, "Forbidden.RAM")),
                percent("CreateDisk", 10, &json!({"delay-after": "3s"})),
                percent("DescribeDisks", 15, &json!("no-rows")),
                percent("DescribeDisks", 10, &json!("internal-error")),
            ],
        }));
        let new = if seed % 2 == 0 {
            new_disk("pvc-1")
        } else {
            NewDisk {
                zones: vec![zone("a").into(), zone("b").into()],
                ..new_disk("pvc-1")
            }
        };
        for round in 0..12_u64 {
            let limit = Duration::from_millis(((seed * 7919 + round * 104_729) % 60) * 100 + 50);
            let call = setup.try_create(seconds(10), &new);
            let outcome = timeout(limit, call).await;
            let exists = setup.rows().len() > others;
            if let Ok(Err(error)) = &outcome
                && exists
                && is_final(error)
            {
                wrong.push(format!(
                    "seed {seed}, round {round}: {}",
                    text(error).chars().take(160).collect::<String>()
                ));
            }
            tokio::time::sleep(Duration::from_millis((seed * 31 + round * 17) % 30 * 100)).await;
        }
        setup.configure(&json!({"faults": [], "rules": {"token_burn_percent": 0}}));
        sleep(120).await;
        let mut created = None;
        for _ in 0..6 {
            match setup.try_create(seconds(60), &new).await {
                Ok(disk) => {
                    created = Some(disk);
                    break;
                }
                Err(_) => sleep(30).await,
            }
        }
        if created.is_none() || setup.rows().len() != others + 1 {
            wrong.push(format!(
                "seed {seed}: {} disks, found {created:?}",
                setup.rows().len() - others
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(12)]
    );
}

//! Responses: their format, and injected faults and delays.

use super::*;

#[tokio::test]
async fn an_error_has_code_message_and_request_id() {
    let test = TestCloud::new(&["--missing-is-error"]).await;
    let (status, body) = test.v1("DeleteDisk", &[("DiskId", "d-none")]).await;
    assert_eq!((status, &body["Code"]), (404, &json!("InvalidDiskId.NotFound")));
    for field in ["RequestId", "HostId", "Message", "Recommend"] {
        assert!(body[field].is_string(), "{field}: {body}");
    }
}

#[tokio::test]
async fn an_error_without_a_format_is_xml() {
    let test = TestCloud::new(&[]).await;
    let signer = signer();
    let mut all = signer.v1("POST", "Nonsense", Params::new());
    all.remove("Format");
    let (status, body) = test.send_v1(&signer.resign("POST", all)).await;
    assert_eq!(status, 404);
    let text = body.as_str().unwrap();
    assert!(text.contains("<Error>") && text.contains("<Code>InvalidAction.NotFound</Code>"));
}

#[tokio::test]
async fn a_throttled_response_has_the_time_to_wait() {
    let test = TestCloud::new(&["--throttle=DescribeRegions=0"]).await;
    let response = test.post("DescribeRegions", &[]).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let header = response.headers()["x-ratelimit-user-api"].to_str().unwrap();
    assert!(header.contains("TimeLeft:"), "{header}");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["Code"], "Throttling");
}

#[tokio::test]
async fn responses_are_lost_and_corrupted_as_configured() {
    let test = TestCloud::new(&[]).await;
    let faults: Vec<Value> = ["reset-before", "reset-after", "truncated", "empty", "html"]
        .iter()
        .zip(1..)
        .map(|(kind, n)| json!({"action": "CreateDisk", "from": n, "kind": kind}))
        .collect();
    test.cloud.configure(&json!({"faults": faults})).unwrap();
    let send = || test.post("CreateDisk", &disk()).send();
    let disks = || test.cloud.state()["disks"].as_array().unwrap().len();
    assert!(send().await.is_err());
    assert_eq!(disks(), 0);
    assert!(send().await.is_err());
    assert_eq!(disks(), 1);
    let half = send().await.unwrap().text().await.unwrap();
    assert!(!half.is_empty() && serde_json::from_str::<Value>(&half).is_err());
    assert_eq!(send().await.unwrap().text().await.unwrap(), "");
    let page = send().await.unwrap();
    assert_eq!(page.status(), 502);
    assert!(page.text().await.unwrap().starts_with("<html>"));
    assert_eq!(disks(), 4);
    assert_eq!(send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_message_may_be_null() {
    let test = TestCloud::new(&[]).await;
    let fault = json!({"action": "AttachDisk", "kind": "null-message"});
    test.cloud.configure(&json!({"faults": [fault]})).unwrap();
    let (_, body) = test.v1("AttachDisk", &[]).await;
    assert_eq!(body["Message"], Value::Null);
    assert!(body.as_object().unwrap().contains_key("Message"));
}

#[tokio::test]
async fn a_success_without_a_format_is_xml_with_all_its_fields() {
    let test = TestCloud::new(&[]).await;
    let disk = test.create().await;
    let signer = signer();
    let mut all = signer.v1("POST", "DescribeDisks", params(&[("RegionId", "cn-beijing")]));
    all.remove("Format");
    let (status, body) = test.send_v1(&signer.resign("POST", all)).await;
    let text = body.as_str().unwrap();
    assert_eq!(status, 200);
    for part in [
        "<DescribeDisksResponse>",
        &format!("<DiskId>{disk}</DiskId>"),
        "<TagKey>测试 a&amp;b=c</TagKey>",
        "<Size>20</Size>",
        "<RequestId>",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn create_snapshot_is_throttled_with_403_and_the_account_has_its_own_header() {
    let test = TestCloud::new(&["--throttle=CreateSnapshot=0"]).await;
    let response = test.v1("CreateSnapshot", &[("DiskId", "d-one")]).await;
    assert_eq!(code(&response), "403 Throttling");
    test.cloud
        .configure(&json!({"throttle": {"actions": null, "user": 0}}))
        .unwrap();
    let response = test.post("DescribeRegions", &[]).send().await.unwrap();
    let headers = response.headers();
    assert!(headers.contains_key("x-ratelimit-user"));
    let millis: u64 = headers["x-acs-retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60_000).contains(&millis), "{millis}");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["Code"], "Throttling.User");
}

#[tokio::test]
async fn a_shared_disk_names_its_holders_only_in_its_attachments() {
    let test = TestCloud::new(&["--nodes=i-one=cn-beijing-a=ecs.g8i.large"]).await;
    let mut order = disk().to_vec();
    order.push(("MultiAttach", "Enabled"));
    let (_, body) = test.v1("CreateDisk", &order).await;
    let disk = body["DiskId"].as_str().unwrap().to_owned();
    let pair = [("DiskId", disk.as_str()), ("InstanceId", "i-one")];
    assert_eq!(test.v1("AttachDisk", &pair).await.0, 200);
    let (_, body) = test.v1("DescribeDisks", &[("RegionId", "cn-beijing")]).await;
    let row = &body["Disks"]["Disk"][0];
    assert_eq!((&row["InstanceId"], &row["Device"]), (&json!(""), &json!("")));
    assert_eq!(row["Attachments"]["Attachment"][0]["InstanceId"], "i-one");
}

#[tokio::test]
async fn lists_of_ids_are_json_of_at_most_a_hundred_and_return_ten_rows_by_default() {
    let test = TestCloud::new(&[]).await;
    let mut ids = Vec::new();
    for _ in 0..11 {
        ids.push(test.create().await);
    }
    let list = |ids: &str| {
        let ids = ids.to_owned();
        let test = &test;
        async move {
            let pairs = [("RegionId", "cn-beijing"), ("DiskIds", ids.as_str())];
            test.v1("DescribeDisks", &pairs).await
        }
    };
    let rows = |response: &(u16, Value)| response.1["Disks"]["Disk"].as_array().map_or(0, Vec::len);
    assert_eq!(rows(&list(&json!(ids).to_string()).await), 10);
    assert_eq!(rows(&list("[]").await), 0);
    assert_eq!(rows(&list("").await), 10, "an empty value is not a filter");
    let unknown: Vec<String> = (0..101).map(|n| format!("d-{n}")).collect();
    let response = list(&json!(unknown).to_string()).await;
    assert_eq!(code(&response), "403 InvalidDiskIds.Malformed");
    assert_eq!(rows(&list(&json!(unknown[1..]).to_string()).await), 0);
    for wrong in ["oops", "[1]", "{}", "d-1"] {
        assert_eq!(code(&list(wrong).await), "400 InvalidParameter.DiskIds");
    }
}

#[tokio::test]
async fn a_response_can_be_slow_and_a_call_can_take_effect_late() {
    let test = TestCloud::new(&[]).await;
    let configure = |kind: Value| {
        let fault = json!({"action": "CreateDisk", "kind": kind});
        test.cloud.configure(&json!({"faults": [fault]})).unwrap();
    };
    let disks = || test.cloud.state()["disks"].as_array().unwrap().len();
    let send = || test.post("CreateDisk", &disk());
    configure(json!({"slow-drip": "400ms"}));
    let mut response = send().send().await.unwrap();
    assert_eq!((response.status().as_u16(), disks()), (200, 1));
    let (mut whole, mut bits) = (Vec::new(), 0);
    while let Some(bit) = response.chunk().await.unwrap() {
        whole.extend(bit);
        bits += 1;
    }
    assert!(bits > 3, "{bits}");
    let body: Value = serde_json::from_slice(&whole).unwrap();
    assert!(body["DiskId"].is_string(), "{body}");

    // A call completes although its client disconnects first.
    configure(json!({"delay-before": "4s"}));
    let canceled = send().timeout(Duration::from_secs(1)).send().await;
    assert!(canceled.unwrap_err().is_timeout());
    assert_eq!(disks(), 1);
    let made = async |count| {
        let made = async {
            while disks() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Shorter than the delay of the response below.
        let ample = Duration::from_secs(50);
        tokio::time::timeout(ample, made).await.unwrap();
        disks()
    };
    assert_eq!(made(2).await, 2);

    // A late response does not delay other calls.
    configure(json!({"delay-after": "60s"}));
    let slow = async {
        let slow = send().timeout(Duration::from_secs(2)).send();
        slow.await.unwrap_err().is_timeout()
    };
    let other = test.v1("DescribeRegions", &[]);
    let (timed_out, other) = tokio::join!(slow, other);
    assert_eq!((timed_out, other.0, made(3).await), (true, 200, 3));
}

#[tokio::test]
async fn a_hung_call_takes_effect_and_its_connection_stays_open() {
    let test = TestCloud::new(&[]).await;
    let fault = json!({"action": "CreateDisk", "kind": "hang"});
    test.cloud.configure(&json!({"faults": [fault]})).unwrap();
    let sent = test.post("CreateDisk", &disk()).timeout(Duration::from_secs(2));
    let error = sent.send().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(test.cloud.state()["disks"].as_array().unwrap().len(), 1);
    test.create().await;
}

#[tokio::test]
async fn each_action_has_its_latency_and_is_served_meanwhile() {
    let test = TestCloud::new(&["--latency=DescribeRegions=4s"]).await;
    let start = tokio::time::Instant::now();
    let responses = tokio::join!(
        test.v1("DescribeRegions", &[]),
        test.v1("DescribeRegions", &[]),
        test.create()
    );
    assert_eq!((responses.0.0, responses.1.0), (200, 200));
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_secs(4), "{elapsed:?}");
    assert!(
        elapsed < Duration::from_secs(8),
        "the calls were serialized: {elapsed:?}"
    );
}

#[tokio::test]
async fn a_throttled_response_can_lack_the_time_to_wait() {
    let test = TestCloud::new(&["--throttle=DescribeRegions=0/1s,headers=off"]).await;
    let response = test.post("DescribeRegions", &[]).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let headers = response.headers();
    assert!(!headers.contains_key("x-ratelimit-user-api"), "{headers:?}");
    assert!(!headers.contains_key("x-acs-retry-after"), "{headers:?}");
}

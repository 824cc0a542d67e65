//! The instance metadata service.

use super::*;

#[tokio::test]
async fn an_instance_reads_its_metadata() {
    let test = TestCloud::new(&["--nodes=i-one=cn-beijing-b"]).await;
    let get = |path: &'static str| test.get(path);
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let path = "/imds/i-one/latest/meta-data/zone-id";
    assert_eq!(text(get(path).await.1), "cn-beijing-b");
    let path = "/imds/i-one/latest/dynamic/instance-identity/document";
    assert_eq!(get(path).await.1["instance-id"], "i-one");
    assert_eq!(get("/imds/i-one/latest/meta-data/nonsense").await.0, 404);
    assert_eq!(get("/imds/i-two/latest/meta-data/zone-id").await.0, 404);
}

#[tokio::test]
async fn metadata_tokens_are_validated() {
    let test = TestCloud::new(&["--metadata-token-required"]).await;
    let base = test.cloud.metadata_endpoint(&test.cloud.nodes()[0].id).unwrap();
    let issue = |ttl: &'static str| {
        let request = test.client.put(format!("{base}/latest/api/token"));
        request.header("X-aliyun-ecs-metadata-token-ttl-seconds", ttl)
    };
    let item = |token: Option<&str>| {
        let request = test.client.get(format!("{base}/latest/meta-data/instance-id"));
        match token {
            Some(token) => request.header("X-aliyun-ecs-metadata-token", token),
            None => request,
        }
    };
    assert_eq!(test.read(issue("0")).await.0, 400);
    assert_eq!(test.read(issue("21601")).await.0, 400);
    let forwarded = issue("60").header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(test.read(forwarded).await.0, 403);
    let (status, token) = test.read(issue("60")).await;
    assert_eq!(status, 200);
    assert_eq!(test.read(item(None)).await.0, 403);
    assert_eq!(test.read(item(Some("stale"))).await.0, 401);
    let (status, id) = test.read(item(token.as_str())).await;
    assert_eq!((status, id), (200, Value::String(test.node())));
}

#[tokio::test]
async fn metadata_can_be_limited_slow_or_unreachable() {
    let test = TestCloud::new(&["--nodes=i-one"]).await;
    let path = "/imds/i-one/latest/meta-data/zone-id";
    let configure = |patch: Value| {
        test.cloud.configure(&json!({"metadata": null})).unwrap();
        test.cloud.configure(&json!({"metadata": patch})).unwrap();
    };
    configure(json!({"rate": 0}));
    assert_eq!(test.get(path).await.0, 429);
    configure(json!({"delay": "100ms"}));
    let begun = tokio::time::Instant::now();
    assert_eq!(test.get(path).await.0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(100));
    configure(json!({"unreachable": true}));
    assert!(test.client.get(test.url(path)).send().await.is_err());
}

#[tokio::test]
async fn role_credentials_sign_only_with_their_token() {
    let test = TestCloud::new(&["--ram-role=worker", "--nodes=i-one"]).await;
    let path = "/imds/i-one/latest/meta-data/ram/security-credentials/";
    assert_eq!(test.get(path).await.1, "worker");
    let (_, found) = test.get(&format!("{path}worker")).await;
    assert_eq!(found["Code"], "Success");
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    let mut role = Signer {
        key: text("AccessKeyId"),
        secret: text("AccessKeySecret"),
        token: Some(text("SecurityToken")),
        now: SystemClock.now(),
        version: "2014-05-26",
    };
    assert_eq!(test.v3(&role, "DescribeRegions", &[]).await.0, 200);
    let all = role.v1("POST", "DescribeRegions", Params::new());
    assert_eq!(test.send_v1(&all).await.0, 200);
    role.token = None;
    let response = test.v3(&role, "DescribeRegions", &[]).await;
    assert_eq!(code(&response), "400 MissingSecurityToken");
}

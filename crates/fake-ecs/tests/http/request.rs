//! The encoding of requests, and requests that are rejected before their action.

use super::*;

#[tokio::test]
async fn both_signatures_work_for_the_lifecycle_of_a_disk() {
    let test = TestCloud::new(&["--nodes=i-one=cn-beijing-a"]).await;
    let disk = test.create().await;
    let pair = [("DiskId", disk.as_str()), ("InstanceId", "i-one")];
    assert_eq!(test.v3(&signer(), "AttachDisk", &pair).await.0, 200);
    let ids = format!("[{disk:?}]");
    let list = [("RegionId", "cn-beijing"), ("DiskIds", ids.as_str())];
    let (_, body) = test.v1("DescribeDisks", &list).await;
    let row = &body["Disks"]["Disk"][0];
    assert_eq!(row["Status"], "In_use");
    assert_eq!(row["Attachments"]["Attachment"][0]["InstanceId"], "i-one");
    assert_eq!(row["SerialNumber"], disk[2..]);
    assert_eq!(row["Tags"]["Tag"][0], json!({"TagKey": "测试 a&b=c", "TagValue": ""}));
    assert_eq!(row["IOPS"], 2800);
    assert_eq!(test.v3(&signer(), "DetachDisk", &pair).await.0, 200);
    assert_eq!(test.v1("DeleteDisk", &[("DiskId", &disk)]).await.0, 200);
    let (_, body) = test.v1("DescribeDisks", &list).await;
    assert_eq!(body["Disks"]["Disk"], json!([]));
}

#[tokio::test]
async fn parameters_can_be_in_the_query_of_get_or_in_a_form() {
    let test = TestCloud::new(&[]).await;
    let own = params(&[("RegionId", "cn-beijing")]);
    let all = signer().v1("GET", "DescribeDisks", own.clone());
    assert_eq!(test.get(&format!("/?{}", query(&all))).await.0, 200);
    let all = signer().v1("POST", "DescribeDisks", own);
    let request = test
        .client
        .post(test.url("/"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(query(&all));
    assert_eq!(test.read(request).await.0, 200);
}

#[tokio::test]
async fn unknown_actions_and_missing_parameters_are_rejected() {
    let test = TestCloud::new(&[]).await;
    let response = test.v1("describeDisks", &[]).await;
    assert_eq!(code(&response), "404 InvalidAction.NotFound");
    let response = test.v1("AttachDisk", &[("DiskId", "d-one")]).await;
    assert_eq!(code(&response), "400 MissingParameter");
}

#[tokio::test]
async fn query_and_form_are_signed_together_with_their_empty_values() {
    let test = TestCloud::new(&[]).await;
    let own = params(&[("RegionId", "cn-beijing"), ("DiskName", ""), ("Size", "20")]);
    let all = signer().v1("POST", "DescribeDisks", own);
    let (form, rest): (Params, Params) = all
        .clone()
        .into_iter()
        .partition(|(name, _)| ["RegionId", "DiskName", "Action", "Signature"].contains(&&**name));
    let post = |query_part: &Params, form_part: &Params| {
        let url = test.url(&format!("/?{}", query(query_part)));
        let request = test.client.post(url).body(query(form_part));
        request.header("content-type", "application/x-www-form-urlencoded")
    };
    assert_eq!(test.read(post(&rest, &form)).await.0, 200);
    // The signature covers an empty value.
    let all = signer().v1("POST", "DescribeDisks", params(&[("DiskName", "")]));
    let mut less = all.clone();
    less.remove("DiskName");
    let response = test.send_v1(&less).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_v3_request_can_have_a_form_and_unsigned_headers() {
    let test = TestCloud::new(&[]).await;
    let host = test.cloud.endpoint().unwrap().trim_start_matches("http://");
    let form = "RegionId=cn-beijing";
    let send = |headers: Params, body: &'static str| {
        let mut request = test.client.post(test.url("/")).body(body);
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            request = request.header(name, value);
        }
        // Not signed.
        request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-sdk-client", "test")
            .header("user-agent", "test")
    };
    let headers = signer().v3(host, "DescribeDisks", &Params::new(), form);
    assert_eq!(test.read(send(headers, form)).await.0, 200);
    let headers = signer().v3(host, "DescribeDisks", &Params::new(), form);
    let response = test.read(send(headers, "RegionId=cn-beijinG")).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn an_incomplete_request_is_rejected_before_its_action() {
    let test = TestCloud::new(&[]).await;
    let signer = signer();
    for (name, value, expected) in [
        ("Version", Some("2099-01-01"), "400 InvalidVersion"),
        ("SignatureMethod", Some("HMAC-MD5"), "400 InvalidSignatureMethod"),
        ("SignatureVersion", Some("2.0"), "400 IncompleteSignature"),
        ("Action", None, "400 MissingParameter"),
        ("Version", None, "400 MissingParameter"),
        ("AccessKeyId", None, "400 MissingParameter"),
        ("SignatureNonce", None, "400 MissingParameter"),
        ("Timestamp", None, "400 MissingParameter"),
    ] {
        let mut all = signer.v1("POST", "DescribeRegions", Params::new());
        match value {
            Some(value) => all.insert(name.to_owned(), value.to_owned()),
            None => all.remove(name),
        };
        let response = test.send_v1(&signer.resign("POST", all)).await;
        assert_eq!(code(&response), expected, "{name}");
    }
    let mut all = signer.v1("POST", "DescribeRegions", Params::new());
    all.remove("Signature");
    assert_eq!(code(&test.send_v1(&all).await), "400 MissingParameter");
    let all = signer.v1("PUT", "DescribeRegions", Params::new());
    let put = test.client.put(test.url(&format!("/?{}", query(&all))));
    assert_eq!(code(&test.read(put).await), "400 UnsupportedHTTPMethod");
    assert_eq!(test.cloud.state()["disks"], json!([]));
}

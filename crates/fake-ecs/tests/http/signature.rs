//! Signatures, nonces, clocks and keys.

use super::*;

#[tokio::test]
async fn a_modified_request_is_rejected_with_the_servers_string_to_sign() {
    let test = TestCloud::new(&[]).await;
    let mut all = signer().v1("POST", "DeleteDisk", params(&[("DiskId", "d-one")]));
    all.insert("DiskId".to_owned(), "d-two".to_owned());
    let response = test.send_v1(&all).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
    let message = response.1["Message"].as_str().unwrap();
    assert!(message.contains("server string to sign is:POST&%2F&"), "{message}");
    // The signature covers the method.
    let all = signer().v1("GET", "DescribeRegions", Params::new());
    assert_eq!(code(&test.send_v1(&all).await), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_modified_v3_request_is_rejected() {
    let test = TestCloud::new(&[]).await;
    let host = test.cloud.endpoint().unwrap().trim_start_matches("http://");
    let own = params(&[("DiskId", "d-one")]);
    let headers = || signer().v3(host, "DeleteDisk", &own, "");
    let other = params(&[("DiskId", "d-two")]);
    let response = test.send_v3(&other, &headers()).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
    let mut swapped = headers();
    swapped.insert("x-acs-action".to_owned(), "DescribeRegions".to_owned());
    let response = test.send_v3(&own, &swapped).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
    // The hash is of another body.
    let body = signer().v3(host, "DeleteDisk", &own, "RegionId=x");
    let response = test.send_v3(&own, &body).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
    // An `x-acs-` header is not signed.
    let mut more = headers();
    more.insert("x-acs-extra".to_owned(), "1".to_owned());
    assert_eq!(code(&test.send_v3(&own, &more).await), "400 IncompleteSignature");
}

#[tokio::test]
async fn a_nonce_is_valid_once() {
    let test = TestCloud::new(&[]).await;
    let all = signer().v1("POST", "DescribeRegions", Params::new());
    assert_eq!(test.send_v1(&all).await.0, 200);
    assert_eq!(code(&test.send_v1(&all).await), "400 SignatureNonceUsed");
}

#[tokio::test]
async fn clocks_can_differ_by_fifteen_minutes() {
    let test = TestCloud::new(&[]).await;
    for (minutes, expected) in [(14, 200), (-14, 200), (16, 400), (-16, 400)] {
        let mut signer = signer();
        signer.now += jiff::SignedDuration::from_mins(minutes);
        let all = signer.v1("POST", "DescribeRegions", Params::new());
        assert_eq!(test.send_v1(&all).await.0, expected, "{minutes}");
    }
    let signer = signer();
    let mut all = signer.v1("POST", "DescribeRegions", Params::new());
    all.insert("Timestamp".to_owned(), "2026-01-15 08:00:00".to_owned());
    let response = test.send_v1(&signer.resign("POST", all)).await;
    assert_eq!(code(&response), "400 InvalidTimeStamp.Format");
}

#[tokio::test]
async fn unknown_and_inactive_keys_are_rejected() {
    let test = TestCloud::new(&[]).await;
    let mut unknown = signer();
    unknown.key = "LTAI5tSTRANGER".to_owned();
    let response = test.v3(&unknown, "DescribeRegions", &[]).await;
    assert_eq!(code(&response), "404 InvalidAccessKeyId.NotFound");
    test.cloud.configure(&json!({"inactive_keys": [KEY]})).unwrap();
    let response = test.v1("DescribeRegions", &[]).await;
    assert_eq!(code(&response), "400 InvalidAccessKeyId.Inactive");
}

#[tokio::test]
async fn a_v3_request_must_sign_its_host() {
    let test = TestCloud::new(&[]).await;
    let host = test.cloud.endpoint().unwrap().trim_start_matches("http://");
    let mut headers = signer().v3(host, "DescribeRegions", &Params::new(), "");
    let unsigned = headers["authorization"].replace("SignedHeaders=host;", "SignedHeaders=");
    headers.insert("authorization".to_owned(), unsigned);
    let response = test.send_v3(&Params::new(), &headers).await;
    assert_eq!(code(&response), "400 IncompleteSignature");
    // Another host was signed.
    let headers = signer().v3("elsewhere.example", "DescribeRegions", &Params::new(), "");
    let response = test.send_v3(&Params::new(), &headers).await;
    assert_eq!(code(&response), "400 SignatureDoesNotMatch");
}

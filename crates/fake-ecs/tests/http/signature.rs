//! Signatures, nonces, clocks and keys.

use super::*;

#[tokio::test]
async fn a_tampered_request_is_refused_with_the_servers_string_to_sign() {
    let lab = Lab::new(&[]).await;
    let mut all = signer().v1("POST", "DeleteDisk", params(&[("DiskId", "d-one")]));
    all.insert("DiskId".to_owned(), "d-two".to_owned());
    let answer = lab.send_v1(&all).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    let message = answer.1["Message"].as_str().unwrap();
    assert!(message.contains("server string to sign is:POST&%2F&"), "{message}");
    // The method is signed, too.
    let all = signer().v1("GET", "DescribeRegions", Params::new());
    assert_eq!(code(&lab.send_v1(&all).await), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_tampered_v3_request_is_refused() {
    let lab = Lab::new(&[]).await;
    let host = lab.cloud.endpoint().unwrap().trim_start_matches("http://");
    let own = params(&[("DiskId", "d-one")]);
    let headers = || signer().v3(host, "DeleteDisk", &own, "");
    let other = params(&[("DiskId", "d-two")]);
    let answer = lab.send_v3(&other, &headers()).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    let mut swapped = headers();
    swapped.insert("x-acs-action".to_owned(), "DescribeRegions".to_owned());
    let answer = lab.send_v3(&own, &swapped).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    // A body that is not the hashed one.
    let body = signer().v3(host, "DeleteDisk", &own, "RegionId=x");
    let answer = lab.send_v3(&own, &body).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    // A header of the signature that is not signed.
    let mut more = headers();
    more.insert("x-acs-extra".to_owned(), "1".to_owned());
    assert_eq!(code(&lab.send_v3(&own, &more).await), "400 IncompleteSignature");
}

#[tokio::test]
async fn a_nonce_is_good_once() {
    let lab = Lab::new(&[]).await;
    let all = signer().v1("POST", "DescribeRegions", Params::new());
    assert_eq!(lab.send_v1(&all).await.0, 200);
    assert_eq!(code(&lab.send_v1(&all).await), "400 SignatureNonceUsed");
}

#[tokio::test]
async fn clocks_may_differ_by_fifteen_minutes() {
    let lab = Lab::new(&[]).await;
    for (minutes, wanted) in [(14, 200), (-14, 200), (16, 400), (-16, 400)] {
        let mut signer = signer();
        signer.now += jiff::SignedDuration::from_mins(minutes);
        let all = signer.v1("POST", "DescribeRegions", Params::new());
        assert_eq!(lab.send_v1(&all).await.0, wanted, "{minutes}");
    }
    let signer = signer();
    let mut all = signer.v1("POST", "DescribeRegions", Params::new());
    all.insert("Timestamp".to_owned(), "2026-01-15 08:00:00".to_owned());
    let answer = lab.send_v1(&signer.resign("POST", all)).await;
    assert_eq!(code(&answer), "400 InvalidTimeStamp.Format");
}

#[tokio::test]
async fn unknown_and_inactive_keys_are_refused() {
    let lab = Lab::new(&[]).await;
    let mut stranger = signer();
    stranger.key = "LTAI5tSTRANGER".to_owned();
    let answer = lab.v3(&stranger, "DescribeRegions", &[]).await;
    assert_eq!(code(&answer), "404 InvalidAccessKeyId.NotFound");
    lab.cloud.configure(&json!({"inactive_keys": [KEY]})).unwrap();
    let answer = lab.v1("DescribeRegions", &[]).await;
    assert_eq!(code(&answer), "400 InvalidAccessKeyId.Inactive");
}

#[tokio::test]
async fn a_v3_request_must_sign_its_host() {
    let lab = Lab::new(&[]).await;
    let host = lab.cloud.endpoint().unwrap().trim_start_matches("http://");
    let mut headers = signer().v3(host, "DescribeRegions", &Params::new(), "");
    let unsigned = headers["authorization"].replace("SignedHeaders=host;", "SignedHeaders=");
    headers.insert("authorization".to_owned(), unsigned);
    let answer = lab.send_v3(&Params::new(), &headers).await;
    assert_eq!(code(&answer), "400 IncompleteSignature");
    // A host that is not the one that was signed.
    let headers = signer().v3("elsewhere.example", "DescribeRegions", &Params::new(), "");
    let answer = lab.send_v3(&Params::new(), &headers).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
}

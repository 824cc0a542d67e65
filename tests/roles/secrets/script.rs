//! The scripts that read the output of a test run: `scripts/no-secrets` finds secrets, `scripts/failures` failures.

use crate::common::fake::{KEY, SECRET};
use crate::common::process::{Ended, Start};
use crate::text::{assert_failed, assert_lacks};

async fn scan(log: &str) -> Ended {
    run("no-secrets", log).await
}

async fn run(script: &str, log: &str) -> Ended {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    std::fs::write(&file, log).unwrap();
    let script = format!("{}/scripts/{script}", env!("CARGO_MANIFEST_DIR"));
    Start::of(&script).args([file.to_str().unwrap()]).ended().await
}

#[tokio::test]
async fn each_kind_of_secret_is_found_and_reported_without_its_text() {
    let signature = "4a1b2c3d4e5f";
    for secret in [
        KEY.to_owned(),
        SECRET.to_owned(),
        format!("STS.{}", "abcd1234".repeat(3)),
        format!("CAIS{}", "abcd1234".repeat(20)),
        format!("eyJ{0}.eyJ{0}.c2ln", "hbGciOiJSUzI1NiJ9"),
        format!("Signature={signature}"),
        format!("Signature%3D{signature}"),
        "Authorization: ACS3-HMAC-SHA256".to_owned(),
        "\"authorization\": \"ACS3-HMAC-SHA256".to_owned(),
    ] {
        let ended = scan(&format!("running 1 test\nfound {secret} here\nok\n")).await;
        assert_failed(&ended, 1, &["log:2: "]);
        assert_lacks(&ended.stderr, &[&secret]);
    }
}

#[tokio::test]
async fn text_about_signatures_is_accepted_and_an_empty_log_is_an_error() {
    let words = "test v1::a_signature_is_right ... ok\nSignature= is a parameter, \
                 SignatureMethod=HMAC-SHA1 another; Authorization is a header\n";
    let ended = scan(words).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(scan("").await.code, Some(1));
}

#[tokio::test]
async fn failures_of_all_lanes_are_printed_without_the_output_of_other_tests() {
    let log = "     Running tests/good/main.rs\ntest calm ... ok\nsuccesses:\nnoise\ntest result: ok. 1 passed\n\
               \x20    Running tests/bad/main.rs\ntest a ... FAILED\nsuccesses:\nnoise\n\
               failures:\n\n---- a stdout ----\nreason\0\n   3: main\n             at ./main.rs:3:4\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed\n\
               noise\nmake[1]: *** [Makefile:9: waiting] Error 101\nERROR: test_b (test_c.D.test_b)\nnoise\n";
    let ended = run("failures", log).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let expected = "     Running tests/bad/main.rs\nfailures:\n\n---- a stdout ----\nreason\n\nfailures:\n    a\n\n\
                    failed:\nERROR: test_b (test_c.D.test_b)\nmake[1]: *** [Makefile:9: waiting] Error 101\n\
                    test a ... FAILED\n";
    assert_eq!(ended.stdout, expected);
}

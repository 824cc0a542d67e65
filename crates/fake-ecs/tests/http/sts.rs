//! The Security Token Service, and ECS API calls with its temporary keys.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;

const ROLE: &str = "acs:ram::1000000000000001:role/diskplugin";
const PROVIDER: &str = "acs:ram::1000000000000001:oidc-provider/diskplugin";

fn sts() -> Signer {
    Signer {
        version: "2015-04-01",
        ..signer()
    }
}

/// A token that expires this many seconds from now.
fn jwt(seconds: i64) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({"alg": "RS256", "typ": "JWT"}));
    let exp = SystemClock.now().as_second() + seconds;
    let claims = json!({
        "iss": "https://oidc.example", "sub": "system:serviceaccount:kube-system:csi",
        "aud": ["sts.aliyuncs.com"], "exp": exp,
    });
    format!("{header}.{}.c2lnbmF0dXJl", part(claims))
}

fn session() -> Vec<(&'static str, &'static str)> {
    vec![("RoleArn", ROLE), ("RoleSessionName", "test")]
}

/// An unsigned call, with its parameters in the form.
async fn with_token(test: &TestCloud, own: &[(&str, &str)]) -> (u16, Value) {
    let query = "Action=AssumeRoleWithOIDC&Version=2015-04-01&Format=JSON";
    let body = super::query(&params(own));
    let request = test.client.post(test.url(&format!("/?{query}")));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    test.read(request.body(body)).await
}

fn oidc<'a>(token: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let own = [("OIDCProviderArn", PROVIDER), ("OIDCToken", token)];
    let mut all: Vec<_> = own.into_iter().chain(session()).collect();
    all.retain(|(name, _)| !more.iter().any(|(other, _)| name == other));
    all.extend(more);
    all
}

/// A signer with the credentials in a response.
fn signer_of(response: &Value) -> Signer {
    let text = |name: &str| response["Credentials"][name].as_str().unwrap().to_owned();
    Signer {
        key: text("AccessKeyId"),
        secret: text("AccessKeySecret"),
        token: Some(text("SecurityToken")),
        ..signer()
    }
}

#[tokio::test]
async fn a_role_is_assumed_with_either_signature_and_its_key_signs_calls() {
    let test = TestCloud::new(&[]).await;
    let all = sts().v1("POST", "AssumeRole", params(&session()));
    let (status, v1) = test.send_v1(&all).await;
    assert_eq!(status, 200, "{v1}");
    let (status, v3) = test.v3(&sts(), "AssumeRole", &session()).await;
    assert_eq!(status, 200, "{v3}");
    for response in [v1, v3] {
        let role = signer_of(&response);
        assert!(role.key.starts_with("STS."), "{response}");
        assert_eq!(
            response["AssumedRoleUser"]["Arn"],
            "acs:ram::1000000000000001:assumed-role/diskplugin/test"
        );
        assert_eq!(test.v3(&role, "DescribeRegions", &[]).await.0, 200);
        let who = Signer {
            version: "2015-04-01",
            ..role
        };
        let (_, identity) = test.v3(&who, "GetCallerIdentity", &[]).await;
        assert_eq!(identity["IdentityType"], "AssumedRoleUser", "{identity}");
    }
    let (_, identity) = test.v3(&sts(), "GetCallerIdentity", &[]).await;
    assert_eq!(identity["IdentityType"], "RAMUser", "{identity}");
}

#[tokio::test]
async fn a_token_assumes_a_role_without_a_signature_and_is_not_logged() {
    let test = TestCloud::new(&[]).await;
    let token = jwt(60);
    let (status, response) = with_token(&test, &oidc(&token, &[])).await;
    assert_eq!(status, 200, "{response}");
    assert_eq!(
        response["OIDCTokenInfo"]["Subject"],
        "system:serviceaccount:kube-system:csi"
    );
    assert_eq!(test.v3(&signer_of(&response), "DescribeRegions", &[]).await.0, 200);
    let (_, calls) = test.get("/_control/calls").await;
    assert_eq!(calls["counts"]["AssumeRoleWithOIDC"]["calls"], 1);
    assert_eq!(calls["calls"][0]["via"], "unsigned");
    let log = calls.to_string();
    for part in token.split('.') {
        assert!(!log.contains(part), "{log}");
    }
    assert!(!log.contains(&signer_of(&response).key), "{log}");
}

#[tokio::test]
async fn each_invalid_token_or_role_has_its_error_code() {
    let test = TestCloud::new(&[]).await;
    let (good, late) = (jwt(60), jwt(-1));
    for (token, more, expected) in [
        (late.as_str(), vec![], "401 AuthenticationFail.OIDCToken.Expired"),
        ("a.b", vec![], "401 AuthenticationFail.OIDCToken.Invalid"),
        ("e30.e30.x", vec![], "401 AuthenticationFail.OIDCToken.Invalid"),
        ("", vec![], "400 MissingParameter"),
        (
            &good,
            vec![("OIDCProviderArn", "acs:ram::1:oidc-provider/x")],
            "401 AuthenticationFail.NoPermission",
        ),
        (&good, vec![("RoleArn", "acs:ram::1:role/x")], "404 EntityNotExist.Role"),
        (&good, vec![("RoleArn", "x")], "400 InvalidParameter.RoleArn"),
        (
            &good,
            vec![("RoleSessionName", "a b")],
            "400 InvalidParameter.RoleSessionName",
        ),
        (
            &good,
            vec![("DurationSeconds", "899")],
            "400 InvalidParameter.DurationSeconds",
        ),
    ] {
        let response = with_token(&test, &oidc(token, &more)).await;
        assert_eq!(code(&response), expected, "{more:?}");
    }
    let patch = json!({"sts": {"external_id": "wanted"}});
    test.cloud.configure(&patch).unwrap();
    let response = test.v3(&sts(), "AssumeRole", &session()).await;
    assert_eq!(code(&response), "403 NoPermission");
    let given: Vec<_> = session().into_iter().chain([("ExternalId", "wanted")]).collect();
    assert_eq!(test.v3(&sts(), "AssumeRole", &given).await.0, 200);
}

#[tokio::test]
async fn a_temporary_key_requires_its_token_and_expires() {
    let test = TestCloud::new(&[]).await;
    let (_, first) = test.v3(&sts(), "AssumeRole", &session()).await;
    let (_, second) = test.v3(&sts(), "AssumeRole", &session()).await;
    let call = async |role: &Signer| {
        let v3 = code(&test.v3(role, "DescribeRegions", &[]).await);
        let v1 = role.v1("POST", "DescribeRegions", Params::new());
        assert_eq!(code(&test.send_v1(&v1).await), v3);
        v3
    };
    let with = |token: Option<&str>| Signer {
        token: token.map(str::to_owned),
        ..signer_of(&first)
    };
    let other = signer_of(&second).token;
    assert_eq!(call(&signer_of(&first)).await, "200 -");
    assert_eq!(call(&with(None)).await, "400 MissingSecurityToken");
    assert_eq!(
        call(&with(Some("nonsense"))).await,
        "400 InvalidSecurityToken.Malformed"
    );
    assert_eq!(
        call(&with(other.as_deref())).await,
        "400 InvalidSecurityToken.MismatchWithAccessKey"
    );
    let request_body = json!({"op": "expire"});
    let request = test.client.post(test.url("/_control/sessions")).json(&request_body);
    assert_eq!(test.read(request).await.1["expired"], 2);
    assert_eq!(call(&signer_of(&first)).await, "400 InvalidSecurityToken.Expired");
    let mut unknown = signer_of(&first);
    unknown.key = "STS.unknown".to_owned();
    assert_eq!(call(&unknown).await, "404 InvalidAccessKeyId.NotFound");
}

#[tokio::test]
async fn the_service_fails_or_is_unreachable_as_configured() {
    let test = TestCloud::new(&[]).await;
    let token = jwt(60);
    let unavailable = json!({"sts": {"error": {"status": 503, "code": "ServiceUnavailable"}}});
    test.cloud.configure(&unavailable).unwrap();
    let response = with_token(&test, &oidc(&token, &[])).await;
    assert_eq!(code(&response), "503 ServiceUnavailable");
    let unreachable = json!({"sts": {"error": null, "unreachable": true}});
    test.cloud.configure(&unreachable).unwrap();
    let url = test.url("/?Action=AssumeRoleWithOIDC&Version=2015-04-01");
    assert!(test.client.post(url).send().await.is_err());
    // The ECS API is not affected.
    assert_eq!(test.v1("DescribeRegions", &[]).await.0, 200);
}

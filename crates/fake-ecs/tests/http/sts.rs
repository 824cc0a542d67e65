//! The Security Token Service, and what the ECS API does with the keys that it gives out.

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

/// A token that expires so many seconds from now.
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

/// An unsigned call, the parameters in the form.
async fn with_token(lab: &Lab, own: &[(&str, &str)]) -> (u16, Value) {
    let query = "Action=AssumeRoleWithOIDC&Version=2015-04-01&Format=JSON";
    let body = super::query(&params(own));
    let request = lab.client.post(lab.url(&format!("/?{query}")));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    lab.read(request.body(body)).await
}

fn oidc<'a>(token: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let own = [("OIDCProviderArn", PROVIDER), ("OIDCToken", token)];
    let mut all: Vec<_> = own.into_iter().chain(session()).collect();
    all.retain(|(name, _)| !more.iter().any(|(other, _)| name == other));
    all.extend(more);
    all
}

/// The signer of the credentials in an answer.
fn holder(answer: &Value) -> Signer {
    let text = |name: &str| answer["Credentials"][name].as_str().unwrap().to_owned();
    Signer {
        key: text("AccessKeyId"),
        secret: text("AccessKeySecret"),
        token: Some(text("SecurityToken")),
        ..signer()
    }
}

#[tokio::test]
async fn a_role_is_assumed_with_either_signature_and_its_key_signs_calls() {
    let lab = Lab::new(&[]).await;
    let all = sts().v1("POST", "AssumeRole", params(&session()));
    let (status, v1) = lab.send_v1(&all).await;
    assert_eq!(status, 200, "{v1}");
    let (status, v3) = lab.v3(&sts(), "AssumeRole", &session()).await;
    assert_eq!(status, 200, "{v3}");
    for answer in [v1, v3] {
        let role = holder(&answer);
        assert!(role.key.starts_with("STS."), "{answer}");
        assert_eq!(
            answer["AssumedRoleUser"]["Arn"],
            "acs:ram::1000000000000001:assumed-role/diskplugin/test"
        );
        assert_eq!(lab.v3(&role, "DescribeRegions", &[]).await.0, 200);
        let who = Signer {
            version: "2015-04-01",
            ..role
        };
        let (_, identity) = lab.v3(&who, "GetCallerIdentity", &[]).await;
        assert_eq!(identity["IdentityType"], "AssumedRoleUser", "{identity}");
    }
    let (_, identity) = lab.v3(&sts(), "GetCallerIdentity", &[]).await;
    assert_eq!(identity["IdentityType"], "RAMUser", "{identity}");
}

#[tokio::test]
async fn a_token_assumes_a_role_without_a_signature_and_is_not_logged() {
    let lab = Lab::new(&[]).await;
    let token = jwt(60);
    let (status, answer) = with_token(&lab, &oidc(&token, &[])).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["OIDCTokenInfo"]["Subject"],
        "system:serviceaccount:kube-system:csi"
    );
    assert_eq!(lab.v3(&holder(&answer), "DescribeRegions", &[]).await.0, 200);
    let (_, calls) = lab.get("/_control/calls").await;
    assert_eq!(calls["counts"]["AssumeRoleWithOIDC"]["calls"], 1);
    assert_eq!(calls["calls"][0]["via"], "unsigned");
    let log = calls.to_string();
    for part in token.split('.') {
        assert!(!log.contains(part), "{log}");
    }
    assert!(!log.contains(&holder(&answer).key), "{log}");
}

#[tokio::test]
async fn what_is_wrong_with_a_token_or_a_role_has_its_code() {
    let lab = Lab::new(&[]).await;
    let (good, late) = (jwt(60), jwt(-1));
    for (token, more, wanted) in [
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
        let answer = with_token(&lab, &oidc(token, &more)).await;
        assert_eq!(code(&answer), wanted, "{more:?}");
    }
    let patch = json!({"sts": {"external_id": "wanted"}});
    lab.cloud.configure(&patch).unwrap();
    let answer = lab.v3(&sts(), "AssumeRole", &session()).await;
    assert_eq!(code(&answer), "403 NoPermission");
    let given: Vec<_> = session().into_iter().chain([("ExternalId", "wanted")]).collect();
    assert_eq!(lab.v3(&sts(), "AssumeRole", &given).await.0, 200);
}

#[tokio::test]
async fn a_temporary_key_goes_with_its_token_and_ends() {
    let lab = Lab::new(&[]).await;
    let (_, first) = lab.v3(&sts(), "AssumeRole", &session()).await;
    let (_, second) = lab.v3(&sts(), "AssumeRole", &session()).await;
    let asked = async |role: &Signer| {
        let v3 = code(&lab.v3(role, "DescribeRegions", &[]).await);
        let v1 = role.v1("POST", "DescribeRegions", Params::new());
        assert_eq!(code(&lab.send_v1(&v1).await), v3);
        v3
    };
    let with = |token: Option<&str>| Signer {
        token: token.map(str::to_owned),
        ..holder(&first)
    };
    let other = holder(&second).token;
    assert_eq!(asked(&holder(&first)).await, "200 -");
    assert_eq!(asked(&with(None)).await, "400 MissingSecurityToken");
    assert_eq!(
        asked(&with(Some("nonsense"))).await,
        "400 InvalidSecurityToken.Malformed"
    );
    assert_eq!(
        asked(&with(other.as_deref())).await,
        "400 InvalidSecurityToken.MismatchWithAccessKey"
    );
    let order = json!({"op": "expire"});
    let request = lab.client.post(lab.url("/_control/sessions")).json(&order);
    assert_eq!(lab.read(request).await.1["expired"], 2);
    assert_eq!(asked(&holder(&first)).await, "400 InvalidSecurityToken.Expired");
    let mut unknown = holder(&first);
    unknown.key = "STS.unknown".to_owned();
    assert_eq!(asked(&unknown).await, "404 InvalidAccessKeyId.NotFound");
}

#[tokio::test]
async fn the_service_refuses_or_does_not_answer_on_order() {
    let lab = Lab::new(&[]).await;
    let token = jwt(60);
    let refusal = json!({"sts": {"error": {"status": 503, "code": "ServiceUnavailable"}}});
    lab.cloud.configure(&refusal).unwrap();
    let answer = with_token(&lab, &oidc(&token, &[])).await;
    assert_eq!(code(&answer), "503 ServiceUnavailable");
    let dead = json!({"sts": {"error": null, "unreachable": true}});
    lab.cloud.configure(&dead).unwrap();
    let url = lab.url("/?Action=AssumeRoleWithOIDC&Version=2015-04-01");
    assert!(lab.client.post(url).send().await.is_err());
    // The ECS API is another service.
    assert_eq!(lab.v1("DescribeRegions", &[]).await.0, 200);
}

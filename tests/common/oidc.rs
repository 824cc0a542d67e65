//! OIDC tokens and environment variables of a service account with a RAM role.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diskplugin::base::{Clock, SystemClock};
use serde_json::{Value, json};

use super::process::Start;

/// A role that the fake cloud allows to assume.
pub(crate) const ROLE: &str = "acs:ram::1000000000000001:role/diskplugin";
/// An identity provider that the fake cloud trusts.
pub(crate) const PROVIDER: &str = "acs:ram::1000000000000001:oidc-provider/diskplugin";

/// Writes a token with a lifetime in seconds, atomically, and returns it.
pub(crate) fn write_token(file: &Path, seconds: i64) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let exp = SystemClock.now().as_second() + seconds;
    let claims = json!({"exp": exp, "sub": "system:serviceaccount:kube-system:csi"});
    let token = format!(
        "{}.{}.{}",
        part(json!({"alg": "RS256", "typ": "JWT"})),
        part(claims),
        URL_SAFE_NO_PAD.encode("a placeholder as long as a real signature")
    );
    let next = file.with_extension("next");
    std::fs::write(&next, &token).expect("the directory exists");
    std::fs::rename(&next, file).expect("the directory exists");
    token
}

impl Start {
    /// Sets the environment variables that a cluster sets in pods of such an account.
    pub(crate) fn service_account(self, token_file: &Path) -> Self {
        self.env("ALIBABA_CLOUD_ROLE_ARN", ROLE)
            .env("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", PROVIDER)
            .env("ALIBABA_CLOUD_OIDC_TOKEN_FILE", token_file)
    }
}

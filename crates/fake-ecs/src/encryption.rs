//! Encryption at rest: whether a disk is encrypted, and by which key.

use super::api_error::ApiError;
use super::config::{DefaultEncryption, Keys};

/// The account's service key, the default key; descriptions contain its ID.
pub(crate) const SERVICE_KEY: &str = "0f1e2d3c-acs-ecs-service-key";

/// Whether a new disk is encrypted, and by which key.
pub(crate) fn encryption(keys: &Keys, wanted: bool, key: Option<String>) -> Result<(bool, Option<String>), ApiError> {
    let encrypted = match keys.default_encryption {
        _ if wanted => true,
        DefaultEncryption::Off => false,
        DefaultEncryption::Upgrade => true,
        DefaultEncryption::Refuse => {
            return Err(ApiError::new(403, "InvalidEncrypted.NotMatchDiskDefaultEncryption"));
        }
    };
    if let Some(key) = &key {
        check_key(keys, key)?;
    }
    let key = key.or_else(|| encrypted.then(|| SERVICE_KEY.to_owned()));
    Ok((encrypted, key))
}

fn check_key(keys: &Keys, key: &str) -> Result<(), ApiError> {
    let among = |list: &[String]| list.iter().any(|listed| listed == key);
    let (status, code) = if among(&keys.missing) {
        (404, "InvalidParameter.KMSKeyId.NotFound")
    } else if among(&keys.disabled) {
        (403, "InvalidParameter.KMSKeyId.CMKNotEnabled")
    } else if among(&keys.unauthorized) {
        (403, "InvalidParameter.KMSKeyId.CMKUnauthorized")
    } else if among(&keys.asymmetric) {
        (400, "InvalidKMSKeyId.NotSymmetric")
    } else {
        return Ok(());
    };
    Err(ApiError::new(status, code))
}

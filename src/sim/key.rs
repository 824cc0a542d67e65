//! Encryption at rest: whether a disk is encrypted, and by which key.

use super::config::DefaultEncryption;
use super::reply::Refusal;
use super::world::World;

/// The account's service key, which encrypts where no key is named; descriptions tell its id.
pub(crate) const SERVICE_KEY: &str = "0f1e2d3c-acs-ecs-service-key";

impl World {
    /// Whether a new disk is encrypted, and by which key.
    pub(crate) fn encryption(
        &self,
        wanted: bool,
        key: Option<String>,
    ) -> Result<(bool, Option<String>), Refusal> {
        let encrypted = match self.config.keys.default_encryption {
            _ if wanted => true,
            DefaultEncryption::Off => false,
            DefaultEncryption::Upgrade => true,
            DefaultEncryption::Refuse => {
                return Err(Refusal::new(
                    403,
                    "InvalidEncrypted.NotMatchDiskDefaultEncryption",
                ));
            }
        };
        if let Some(key) = &key {
            self.check_key(key)?;
        }
        let key = key.or_else(|| encrypted.then(|| SERVICE_KEY.to_owned()));
        Ok((encrypted, key))
    }

    fn check_key(&self, key: &str) -> Result<(), Refusal> {
        let keys = &self.config.keys;
        let among = |list: &[String]| list.iter().any(|listed| listed == key);
        let (status, code) = if among(&keys.missing) {
            (404, "InvalidParameter.KMSKeyId.NotFound")
        } else if among(&keys.disabled) {
            (403, "InvalidParameter.KMSKeyId.CMKNotEnabled")
        } else if among(&keys.unauthorised) {
            (403, "InvalidParameter.KMSKeyId.CMKUnauthorized")
        } else if among(&keys.asymmetric) {
            (400, "InvalidKMSKeyId.NotSymmetric")
        } else {
            return Ok(());
        };
        Err(Refusal::new(status, code))
    }
}

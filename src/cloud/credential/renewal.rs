//! What follows when credentials were refused: others, where there are others.

use super::{CredentialError, Credentials, Provide};

/// Says that these credentials were refused, and asks for others; none when the source still has the
/// same ones, so that a repetition would be refused again.
pub(in crate::cloud) async fn others_than(
    refused: &Credentials,
    source: &dyn Provide,
) -> Result<Option<Credentials>, CredentialError> {
    source.refused(refused);
    look_for_others(refused, source).await
}

/// Asks for others without a word about these: a mounted Secret may have been replaced meanwhile.
pub(in crate::cloud) async fn look_for_others(
    used: &Credentials,
    source: &dyn Provide,
) -> Result<Option<Credentials>, CredentialError> {
    let found = source.provide().await?;
    Ok(found.filter(|found| !found.same_as(used)))
}

//! Guests with parameters that the kernel accepts only when it boots.

use super::machine::{Guest, SLOTS};
use super::saved;

impl Guest {
    /// Boots a guest with these kernel parameters beside those of every guest; returns none with a message if
    /// guests are not supported.
    pub(crate) async fn booted(parameters: &str) -> Option<Self> {
        let saved = saved::state().await?;
        let slot = SLOTS.acquire().await.expect("never closed");
        let home = saved.path.parent().expect("the state is in a folder");
        let mut guest = saved::booted(home, parameters).await;
        guest._slot = Some(slot);
        Some(guest)
    }
}

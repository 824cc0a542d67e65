//! A call of the API.

use super::action::Action;
use super::log::Via;
use super::params::Params;

#[derive(Debug, Clone)]
pub(crate) struct ApiCall {
    pub(crate) action: Action,
    pub(crate) params: Params,
    pub(crate) via: Via,
    pub(crate) nonce: Option<String>,
}

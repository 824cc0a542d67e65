//! Errors of calls.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) code: String,
    /// `Message` of some errors is null in the real cloud.
    pub(crate) message: Option<String>,
    /// How long a throttled caller should wait.
    pub(crate) wait: Option<Duration>,
}

impl ApiError {
    pub(crate) fn new(status: u16, code: impl Into<String>) -> Self {
        let code = code.into();
        let message = format!("The fake cloud rejected the request: {code}.");
        Self {
            status,
            code,
            message: Some(message),
            wait: None,
        }
    }

    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    pub(crate) fn without_message(mut self) -> Self {
        self.message = None;
        self
    }

    /// The response to a valid request with `DryRun`.
    pub(crate) fn dry_run() -> Self {
        Self::new(400, "DryRunOperation").with_message("Request validation has been passed with DryRun flag set.")
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        Self::new(400, "MissingParameter").with_message(format!(
            "The input parameter \"{parameter}\" that is mandatory for processing this request is \
             not supplied."
        ))
    }

    pub(crate) fn invalid(parameter: &str) -> Self {
        Self::new(400, "InvalidParameter")
            .with_message(format!("The specified parameter \"{parameter}\" is not valid."))
    }
}

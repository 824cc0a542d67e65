//! What the cloud answers: success, refusal, or something that makes no sense.

use std::time::Duration;

use http::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_util::bytes::Bytes;

use super::confidential::Confidential;
use super::error::{Error, Kind};
use super::wire;

/// An answer over HTTP, whole. Has no Debug: it may be one with credentials.
pub(super) struct Answer {
    pub(super) status: u16,
    /// How long the cloud asks to wait.
    pub(super) hint: Option<Duration>,
    pub(super) body: Bytes,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Refusal {
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
}

impl Answer {
    pub(super) fn is_success(&self) -> bool {
        self.status == 200
    }

    /// What it says.
    ///
    /// # Errors
    /// The refusal; [`Kind::Ambiguous`] when it says nothing that can be understood.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        action: &'static str,
        confidential: &Confidential,
    ) -> Result<T, Error> {
        let unreadable = || Error::new(Kind::Ambiguous, action).with_status(self.status);
        if !self.is_success() {
            return Err(self.refused(action, confidential));
        }
        if confidential.is_in(&self.body) {
            let why = "the answer repeats the request, and so is not looked at";
            return Err(unreadable().with_message(why));
        }
        wire::read(&self.body).map_err(|error| {
            unreadable()
                .with_message("the answer cannot be read")
                .with_source(error)
        })
    }

    /// What an answer says that is no success. A proxy's page or an empty body leaves only the status;
    /// JSON that stops in the middle is an answer that was lost, whatever its status.
    pub(super) fn refused(&self, action: &'static str, confidential: &Confidential) -> Error {
        let error = match serde_json::from_slice::<Refusal>(&self.body) {
            Ok(refusal) => refusal.without(confidential).error(action, self.status),
            Err(error) if error.is_eof() && !self.body.is_empty() => {
                Error::new(Kind::Ambiguous, action)
                    .with_status(self.status)
                    .with_message("the answer is cut off")
                    .with_source(error)
            }
            Err(_) => Refusal::default().error(action, self.status),
        };
        error.with_wait(self.hint)
    }
}

impl Refusal {
    /// Without the parts that throw back what the request carried in confidence.
    fn without(self, confidential: &Confidential) -> Self {
        let part = |text: Option<String>| confidential.unless_in(text?);
        let left_out = || "(its words repeat the request, and are left out)".to_owned();
        // The gateway appends the text that it signed; the words before it are good.
        let message = |text: String| match text.split_once("server string to sign is:") {
            Some((words, _)) => words.trim_end().to_owned(),
            None => text,
        };
        let message = self.message.map(message);
        Self {
            code: part(self.code),
            message: message.map(|words| confidential.unless_in(words).unwrap_or_else(left_out)),
            request_id: part(self.request_id),
        }
    }

    fn error(self, action: &'static str, status: u16) -> Error {
        let code = self.code.unwrap_or_default();
        Error::answered(action, status, &code)
            .with_message(self.message.unwrap_or_default())
            .with_request_id(self.request_id.unwrap_or_default())
    }
}

/// The longest window of a quota is a minute. A longer wait is a mistake on the way, and would close the API for good.
const LONGEST_HINT: Duration = Duration::from_secs(65);

/// How long the cloud asks to wait: the larger `TimeLeft` (milliseconds) of its two headers.
pub(super) fn throttle_hint(headers: &HeaderMap) -> Option<Duration> {
    ["x-ratelimit-user-api", "x-ratelimit-user"]
        .into_iter()
        .filter_map(|name| headers.get(name)?.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|field| field.trim().strip_prefix("TimeLeft:")?.trim().parse().ok())
        .map(Duration::from_millis)
        .max()
        .map(|wait| wait.min(LONGEST_HINT))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::cloud::credential::Credentials;
    use crate::cloud::sign::Signed;

    #[test]
    fn the_longer_wait_of_both_headers_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-ratelimit-user-api",
            HeaderValue::from_static("Limit:1,Remain:0,TimeLeft:2000,Reset:1"),
        );
        headers.insert("x-ratelimit-user", HeaderValue::from_static("TimeLeft:300"));
        assert_eq!(throttle_hint(&headers), Some(Duration::from_secs(2)));
        assert_eq!(throttle_hint(&HeaderMap::new()), None);
        let years = HeaderValue::from_static("TimeLeft:99999999999999");
        headers.insert("x-ratelimit-user", years);
        assert_eq!(throttle_hint(&headers), Some(LONGEST_HINT));
    }

    fn confidential() -> Confidential {
        let signed = Signed {
            query: String::new(),
            headers: vec![],
            signature: "not-in-any-text".to_owned(),
        };
        Confidential::of(&Credentials::new("LTAI5tEXAMPLE", "secret-of-it"), &signed)
    }

    #[test]
    fn parts_of_a_refusal_that_repeat_the_key_are_left_out_and_the_others_stay() {
        let refusal = Refusal {
            code: Some("InvalidAccessKeyId.NotFound".to_owned()),
            message: Some("There is no key LTAI5tEXAMPLE.".to_owned()),
            request_id: Some("R-1".to_owned()),
        };
        let error = refusal.without(&confidential()).error("DeleteDisk", 404);
        assert_eq!(
            error.to_string(),
            "DeleteDisk failed with InvalidAccessKeyId.NotFound: (its words repeat the request, \
             and are left out) (HTTP 404, RequestId R-1)"
        );
    }

    #[test]
    fn a_refusal_that_is_cut_off_is_a_lost_answer_and_a_page_is_its_status() {
        for (body, kind) in [
            (r#"{"Code":"InvalidDiskId.NotFound"}"#, Kind::NotFound),
            (r#"{"Code":"InvalidDiskId.Not"#, Kind::Ambiguous),
            ("<html>no such page</html>", Kind::Invalid),
            ("", Kind::Invalid),
        ] {
            let answer = Answer {
                status: 404,
                hint: None,
                body: Bytes::from(body),
            };
            let error = answer.refused("DeleteDisk", &confidential());
            assert_eq!((error.kind(), error.status()), (kind, Some(404)), "{body}");
        }
    }

    #[test]
    fn the_string_that_was_signed_never_gets_into_the_message() {
        let refusal = Refusal {
            code: Some("SignatureDoesNotMatch".to_owned()),
            message: Some(
                "Specified signature is not matched with our calculation. server string to sign \
                 is:POST&%2F&AccessKeyId%3DLTAI"
                    .to_owned(),
            ),
            request_id: None,
        };
        let error = refusal.without(&confidential()).error("DeleteDisk", 400);
        let text = error.to_string();
        assert!(
            !text.contains("LTAI") && text.contains("not matched"),
            "{text}"
        );
    }
}

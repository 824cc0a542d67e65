//! Every field of every request with every invalid value.

use std::collections::BTreeSet;

use prost_reflect::{ReflectMessage, Value};
use tonic::Code;

use crate::hostile::base::{self, Base};
use crate::hostile::field::{Path, paths};
use crate::hostile::rpc::{CALLED, Outcome, call, new_stage, request};
use crate::hostile::rule::{self, Expect, Rule};
use crate::hostile::spoil;

/// A status message travels in a header, which proxies limit to 8 KiB.
const LONGEST_MESSAGE: usize = 6 << 10;

/// The error in the response to a request with a changed field, if any.
pub(crate) fn complaint(path: &Path, expect: Expect, outcome: &Outcome) -> Option<String> {
    let name = path.field().name();
    if let Err(status) = &outcome.response {
        let message = status.message();
        if message.len() > LONGEST_MESSAGE || message.chars().any(char::is_control) {
            return Some(format!(
                "a message of {} bytes, or with control characters: {:.300}",
                message.len(),
                message.escape_debug()
            ));
        }
        if matches!(status.code(), Code::Internal | Code::Unknown | Code::Unimplemented) {
            return Some(format!("{:?}: {message:.300}", status.code()));
        }
    }
    match (expect, &outcome.response) {
        (Expect::Fine, _) => None,
        (Expect::Quiet, Ok(_)) if outcome.calls.is_empty() => None,
        (Expect::Refused(code), Err(status)) => {
            let message = status.message();
            let spaced = name.replace('_', " ");
            let one = spaced.trim_end_matches('s');
            let named = message.contains(name) || message.contains(one);
            let named = named || message.contains(name.trim_end_matches("ies"));
            // A missing oneof has no name of its own.
            let named = named || path.text().split('.').any(|part| message.contains(part));
            if status.code() != code {
                Some(format!("{:?} instead of {code:?}: {message:.300}", status.code()))
            } else if !named {
                Some(format!("the message does not name the field: {message:.300}"))
            } else if code == Code::OutOfRange && outcome.calls.iter().all(|c| c.starts_with("Describe")) {
                // The minimum size can depend on the source.
                None
            } else if !outcome.calls.is_empty() {
                Some(format!("the cloud received {:?}", outcome.calls))
            } else {
                None
            }
        }
        (Expect::Quiet | Expect::Refused(_), response) => {
            let observed = match response {
                Ok(_) => "OK".to_owned(),
                Err(status) => format!("{:?}: {:.300}", status.code(), status.message()),
            };
            Some(format!("{observed} after {:?}, expected {expect:?}", outcome.calls))
        }
    }
}

/// The expected response. ValidateVolumeCapabilities may respond to an unsupported capability or parameter without a
/// confirmation (CSI), after it has read the volume.
pub(crate) fn expected(rpc: &str, path: &Path, value: Option<&Value>, outcome: &Outcome) -> Expect {
    let rule = rule::of(path.field());
    let expect = rule.expect(value);
    let text = path.text();
    let in_question = text.starts_with("volume_capabilities.") || rule == Rule::Known || rule == Rule::Many;
    if rpc == "ValidateVolumeCapabilities"
        && in_question
        && let Ok(response) = &outcome.response
        && !response.has_field_by_name("confirmed")
        && response.has_field_by_name("message")
    {
        return Expect::Fine;
    }
    expect
}

/// The request with this value in the field.
pub(crate) fn spoil(base: &Base, path: &Path, value: Option<&Value>) -> Option<Base> {
    let mut spoilt = base.clone();
    let owner = path.owner(&mut spoilt.message)?;
    match value {
        Some(value) => owner.set_field(path.field(), value.clone()),
        None => owner.clear_field(path.field()),
    }
    Some(spoilt)
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(
        || "nothing".to_owned(),
        |value| format!("{value:?}").chars().take(120).collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn an_invalid_value_of_any_field_is_rejected_and_the_error_names_the_field() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for base in base::served().await {
        for path in paths(&base.message.descriptor()) {
            for value in spoil::values(path.field()) {
                // Unchanged, or in another alternative of the same oneof.
                let Some(spoilt) = spoil(&base, &path, value.as_ref()) else {
                    continue;
                };
                if spoilt.message == base.message {
                    continue;
                }
                // A new cloud, because an accepted request may change it.
                let stage = new_stage();
                base::ids(&stage).await;
                let outcome = call(&stage, spoilt.rpc, &spoilt.message).await;
                let expect = expected(spoilt.rpc, &path, value.as_ref(), &outcome);
                cases += 1;
                if let Some(complaint) = complaint(&path, expect, &outcome) {
                    let value = shown(value.as_ref());
                    wrong.push(format!("{} {} = {value}: {complaint}", base.rpc, path.text()));
                }
            }
        }
    }
    println!("{cases} invalid requests");
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 1000, "{cases}");
}

#[tokio::test(start_paused = true)]
async fn the_valid_requests_are_accepted_and_have_every_field() {
    base::served().await;
    let stage = new_stage();
    let bases = base::all(&base::ids(&stage).await);
    for rpc in CALLED.iter().flat_map(|(_, rpcs)| *rpcs) {
        let all: BTreeSet<String> = paths(&request(rpc)).iter().map(Path::text).collect();
        let mut reached = BTreeSet::new();
        for base in bases.iter().filter(|base| base.rpc == *rpc) {
            for path in paths(&request(rpc)) {
                if path.owner(&mut base.message.clone()).is_some() {
                    reached.insert(path.text());
                }
            }
        }
        let missing: Vec<_> = all.difference(&reached).collect();
        assert!(missing.is_empty(), "no request of {rpc} has {missing:?}");
    }
}

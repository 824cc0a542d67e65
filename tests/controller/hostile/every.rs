//! Every field of every request with every bad value.

use std::collections::BTreeSet;

use prost_reflect::{ReflectMessage, Value};
use tonic::Code;

use crate::hostile::base::{self, Base};
use crate::hostile::field::{Path, paths};
use crate::hostile::rpc::{CALLED, Outcome, Stage, request};
use crate::hostile::rule::{self, Expect, Rule};
use crate::hostile::spoil;

/// A status message travels in a header, of which proxies take 8 KiB.
const LONGEST_MESSAGE: usize = 6 << 10;

/// What is wrong with the answer to a request whose field was spoilt; none if nothing is.
pub(crate) fn complaint(path: &Path, expect: Expect, outcome: &Outcome) -> Option<String> {
    let name = path.field().name();
    if let Err(status) = &outcome.answer {
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
    match (expect, &outcome.answer) {
        (Expect::Fine, _) => None,
        (Expect::Quiet, Ok(_)) if outcome.calls.is_empty() => None,
        (Expect::Refused(code), Err(status)) => {
            let message = status.message();
            let spaced = name.replace('_', " ");
            let one = spaced.trim_end_matches('s');
            let named = message.contains(name) || message.contains(one);
            let named = named || message.contains(name.trim_end_matches("ies"));
            // What is missing in a oneof has no name of its own.
            let named = named || path.text().split('.').any(|part| message.contains(part));
            if status.code() != code {
                Some(format!("{:?} instead of {code:?}: {message:.300}", status.code()))
            } else if !named {
                Some(format!("the message does not name it: {message:.300}"))
            } else if code == Code::OutOfRange && outcome.calls.iter().all(|c| c.starts_with("Describe")) {
                // What a size may be at least can depend on what it is made from.
                None
            } else if !outcome.calls.is_empty() {
                Some(format!("the cloud was asked {:?}", outcome.calls))
            } else {
                None
            }
        }
        (Expect::Quiet | Expect::Refused(_), answer) => {
            let told = match answer {
                Ok(_) => "OK".to_owned(),
                Err(status) => format!("{:?}: {:.300}", status.code(), status.message()),
            };
            Some(format!("{told} after {:?}, expected {expect:?}", outcome.calls))
        }
    }
}

/// What is expected of this request: ValidateVolumeCapabilities may answer a capability or parameter
/// that it does not like without confirming it (CSI), after it has looked whether the volume is there.
pub(crate) fn expected(rpc: &str, path: &Path, value: Option<&Value>, outcome: &Outcome) -> Expect {
    let rule = rule::of(path.field());
    let expect = rule.expect(value);
    let text = path.text();
    let in_question = text.starts_with("volume_capabilities.") || rule == Rule::Known || rule == Rule::Many;
    if rpc == "ValidateVolumeCapabilities"
        && in_question
        && let Ok(answer) = &outcome.answer
        && !answer.has_field_by_name("confirmed")
        && answer.has_field_by_name("message")
    {
        return Expect::Fine;
    }
    expect
}

/// The field of the request takes the value.
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
async fn every_field_of_every_request_is_refused_by_name_when_it_is_wrong() {
    let (mut cases, mut wrong) = (0, Vec::new());
    for base in base::served().await {
        for path in paths(&base.message.descriptor()) {
            for value in spoil::values(path.field()) {
                // What is there already, or is on another way to the same choice, is not spoilt.
                let Some(spoilt) = spoil(&base, &path, value.as_ref()) else {
                    continue;
                };
                if spoilt.message == base.message {
                    continue;
                }
                // A stage of its own: one that is taken for right may change the cloud.
                let stage = Stage::new();
                base::ids(&stage).await;
                let outcome = stage.call(spoilt.rpc, &spoilt.message).await;
                let expect = expected(spoilt.rpc, &path, value.as_ref(), &outcome);
                cases += 1;
                if let Some(complaint) = complaint(&path, expect, &outcome) {
                    let value = shown(value.as_ref());
                    wrong.push(format!("{} {} = {value}: {complaint}", base.rpc, path.text()));
                }
            }
        }
    }
    println!("{cases} bad requests");
    assert!(wrong.is_empty(), "{} of {cases}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 1000, "{cases}");
}

#[tokio::test(start_paused = true)]
async fn the_right_requests_are_not_refused_and_have_every_field() {
    base::served().await;
    let stage = Stage::new();
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

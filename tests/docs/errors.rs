//! The pages of failures, and the failure of each code of the cloud. `UPDATE=1 cargo test --test docs errors` generates
//! them; otherwise they are compared.

use std::collections::BTreeMap;
use std::path::PathBuf;

use diskplugin::disk::Error;
use diskplugin::model::{Failure, FailureKind};

use crate::page::{list_item, root};

const BEGIN: &str = "<!-- Generated from src/model/failure/table.rs by UPDATE=1 cargo test --test docs errors -->\n";
const END: &str = "<!-- End of the generated table -->";

/// Asserts that the file has this text, or writes it if UPDATE is set.
pub(crate) fn assert_generated(path: PathBuf, wanted: &str) {
    let found = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, wanted).unwrap();
        return;
    }
    for (line, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(found, wanted, "{}", path.display());
}

/// The gRPC code of the kind in the notation of the pages, such as `NOT_FOUND`.
pub(crate) fn code_name(kind: FailureKind) -> String {
    let mut name = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[test]
fn the_page_has_every_failure_by_its_code() {
    let path = root().join("docs/reference/errors.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for failure in Failure::ALL {
        let (name, code) = (failure.name(), code_name(failure.kind()));
        let link = format!("[`{name}`](failures.md#{})", name.to_lowercase());
        names.entry(code).or_default().push(link);
    }
    let mut table = "\n".to_owned();
    for (code, names) in names {
        table += &item(&format!("`{code}`"), &names.join(", "));
    }
    assert_generated(path, &format!("{before}{BEGIN}{table}\n{END}{after}"));
}

#[test]
fn the_page_of_failures_has_a_section_for_each_with_a_message_of_the_driver() {
    let path = root().join("docs/reference/failures.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, _) = text.split_once(BEGIN).unwrap();
    assert_generated(path, &format!("{before}{BEGIN}{}", sections()));
}

/// An error of the cloud in `tests/data/cloud-errors.txt`.
struct CloudError {
    /// `*` is any action.
    action: String,
    status: u16,
    code: String,
    /// The name of the failure.
    failure: String,
}

fn cloud_errors() -> Vec<CloudError> {
    let text = std::fs::read_to_string(root().join("tests/data/cloud-errors.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split([' ', ':']).collect();
            CloudError {
                action: words[0].to_owned(),
                status: words[1].parse().unwrap(),
                code: words[2].to_owned(),
                failure: words.last().unwrap().to_string(),
            }
        })
        .collect()
}

/// A section for each failure: meaning, action, the cloud's codes, and a message of the driver.
fn sections() -> String {
    let errors = cloud_errors();
    let mut text = String::new();
    for failure in Failure::ALL {
        let name = failure.name();
        let own: Vec<_> = errors.iter().filter(|one| one.failure == name).collect();
        text.push_str(&format!("\n## {name}\n\n"));
        let callers = match failure.kind().is_final() {
            true => "final for this attempt",
            false => "the operation may be in progress; the caller repeats the call",
        };
        for (title, content) in [
            ("Meaning", failure.description()),
            ("Cause", &cause(&own)),
            ("Action", failure.advice()),
            ("gRPC code", &format!("`{}`: {callers}", code_name(failure.kind()))),
        ] {
            text += &item(title, content);
        }
        if let Some(example) = own.first() {
            let message = message(example);
            let message = message.strip_suffix(failure.advice()).unwrap();
            text.push_str(&format!("\n```text\n{message}…\n```\n"));
        }
    }
    text
}

fn cause(errors: &[&CloudError]) -> String {
    let mut codes: Vec<_> = errors.iter().map(|one| one.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    match codes.as_slice() {
        [] => "the driver finds it without an error of the cloud; the message has the details".to_owned(),
        codes => format!("the cloud's error `{}`", codes.join("`, `")),
    }
}

/// The message of the driver, as sidecars and kubelet get it.
fn message(error: &CloudError) -> String {
    let name = match error.action.as_str() {
        "*" => "DescribeDisks",
        name => name,
    };
    let source = ecs::Error::from_response(action(name), error.status, &error.code);
    let step = "complete the call".to_owned();
    let status = tonic::Status::from(Error::Cloud { step, source });
    assert!(status.message().starts_with(&error.failure), "{status:?}");
    status.message().to_owned()
}

fn item(title: &str, content: &str) -> String {
    list_item(&format!("* {title}: {content}")) + "\n"
}

/// The name as a static string, which errors contain.
fn action(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

fn outcome(action: &'static str, status: u16, code: &str) -> String {
    let source = ecs::Error::from_response(action, status, code);
    let kind = source.kind();
    let error = Error::Cloud {
        step: "do it".to_owned(),
        source,
    };
    let failure = error.failure();
    let grpc = code_name(failure.kind());
    format!("{kind:?} {grpc} {}", failure.name())
}

#[test]
fn every_error_of_every_action_has_its_kind_its_code_and_its_name() {
    let path = root().join("tests/data/cloud-errors.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut wanted, mut actions, mut of_any) = (String::new(), Vec::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with('#') {
            wanted.push_str(&format!("{line}\n"));
            continue;
        }
        let words: Vec<&str> = line.split([' ', ':']).collect();
        let (name, status, code) = (words[0], words[1].parse().unwrap(), words[2]);
        let result = outcome(action(name), status, code);
        if name == "*" {
            of_any.push((status, code, result.clone()));
        } else {
            actions.push(name);
        }
        wanted.push_str(&format!("{name} {status} {code}: {result}\n"));
    }
    assert!(of_any.len() > 20 && actions.len() > 400);
    actions.dedup();
    for name in actions {
        for (status, code, expected) in &of_any {
            assert_eq!(&outcome(action(name), *status, code), expected, "{name} {code}");
        }
    }
    assert_generated(path, &wanted);
}

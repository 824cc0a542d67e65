//! The table of failures on its page, and what each code of the cloud becomes. Both are written anew
//! by `UPDATE=1 cargo test --test docs errors`, and compared otherwise.

use std::path::PathBuf;

use diskplugin::cloud;
use diskplugin::disk::Error;
use diskplugin::model::Failure;

use crate::page::root;

const BEGIN: &str = "<!-- Generated from src/model/failure/table.rs by UPDATE=1 cargo test --test docs errors -->\n";
const END: &str = "<!-- End of the generated table -->";

/// Writes the text, or fails when it is another one.
fn hold(path: PathBuf, wanted: &str) {
    let there = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, wanted).unwrap();
        return;
    }
    for (line, (is, shall)) in there.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(is, shall, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(there, wanted, "{}", path.display());
}

#[test]
fn the_page_has_every_failure_with_its_code_its_meaning_and_what_to_do() {
    let path = root().join("docs/reference/errors.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table =
        "\n| name | gRPC code | meaning | advice |\n| --- | --- | --- | --- |\n".to_owned();
    for failure in Failure::ALL {
        let row = format!(
            "| `{}` | `{}` | {} | {} |\n",
            failure.name(),
            failure.kind().code_name(),
            failure.description(),
            failure.advice()
        );
        table.push_str(&row);
    }
    hold(path, &format!("{before}{BEGIN}{table}\n{END}{after}"));
}

/// An action by its name: errors hold those of the driver, which live as long as it does.
fn action(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

fn outcome(action: &'static str, status: u16, code: &str) -> String {
    let source = cloud::Error::from_response(action, status, code);
    let kind = source.kind();
    let error = Error::Cloud {
        step: "do it".to_owned(),
        source,
    };
    let failure = error.failure();
    let grpc = failure.kind().code_name();
    format!("{kind:?} {grpc} {}", failure.name())
}

#[test]
fn every_error_of_every_action_keeps_its_kind_its_code_and_its_name() {
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
        let is = outcome(action(name), status, code);
        if name == "*" {
            of_any.push((status, code, is.clone()));
        } else {
            actions.push(name);
        }
        wanted.push_str(&format!("{name} {status} {code}: {is}\n"));
    }
    assert!(of_any.len() > 20 && actions.len() > 400);
    actions.dedup();
    for name in actions {
        for (status, code, shall) in &of_any {
            assert_eq!(
                &outcome(action(name), *status, code),
                shall,
                "{name} {code}"
            );
        }
    }
    hold(path, &wanted);
}

//! The dashboards as Grafana imports them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::monitoring::files::{dashboards, text};
use crate::monitoring::report;

/// A dashboard selects its data source itself.
const DATA_SOURCE: &str = "${datasource}";

/// All values below the key, at any depth.
fn values<'a>(body: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match body {
        Value::Object(fields) => {
            found.extend(fields.get(key));
            fields.values().for_each(|value| values(value, key, found));
        }
        Value::Array(elements) => elements.iter().for_each(|value| values(value, key, found)),
        _ => {}
    }
}

#[test]
fn uids_and_titles_are_unique() {
    let boards = dashboards();
    for key in ["uid", "title"] {
        let all: BTreeSet<_> = boards.iter().map(|board| text(&board.body, key)).collect();
        assert_eq!(all.len(), boards.len(), "{all:?}");
    }
    for board in &boards {
        let panels = board.body["panels"].as_array().unwrap();
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len(), "{}", board.name);
        let titles: BTreeSet<_> = board.panels().into_iter().map(|panel| panel.at).collect();
        assert_eq!(titles.len(), board.panels().len(), "{titles:?}");
    }
    assert_eq!(boards.len(), 3);
}

#[test]
fn no_data_source_is_fixed() {
    for board in dashboards() {
        let variables = board.body["templating"]["list"].as_array().unwrap();
        assert_eq!(variables[0]["type"], "datasource", "{}", board.name);
        assert_eq!(variables[0]["name"], "datasource");
        let mut sources = Vec::new();
        values(&board.body, "datasource", &mut sources);
        assert!(sources.len() > 20, "only {} were found", sources.len());
        let expected = json!({"type": "prometheus", "uid": DATA_SOURCE});
        let fixed = sources.into_iter().filter(|source| **source != expected);
        report(fixed.map(|source| format!("{}: {source}", board.name)));
    }
}

#[test]
fn every_panel_has_a_unit_a_description_and_its_own_place() {
    for board in dashboards() {
        let mut taken = BTreeSet::new();
        report(board.panels().into_iter().flat_map(|panel| {
            let mut wrong = Vec::new();
            if panel.body["fieldConfig"]["defaults"]["unit"]
                .as_str()
                .is_none_or(str::is_empty)
            {
                wrong.push(format!("{}: no unit", panel.at));
            }
            if text(&panel.body, "description").is_empty() {
                wrong.push(format!("{}: no description", panel.at));
            }
            let place = |key: &str| panel.body["gridPos"][key].as_u64().unwrap();
            for x in place("x")..place("x") + place("w") {
                for y in place("y")..place("y") + place("h") {
                    if x >= 24 || !taken.insert((x, y)) {
                        wrong.push(format!("{}: overlaps at {x}, {y}", panel.at));
                    }
                }
            }
            wrong
        }));
    }
}

/// A dashboard whose queries filter by a missing variable would show nothing.
#[test]
fn every_variable_of_a_query_is_defined_and_every_defined_one_is_used() {
    for board in dashboards() {
        let variables = board.body["templating"]["list"].as_array().unwrap();
        let defined: BTreeSet<_> = variables.iter().map(|it| text(it, "name")).collect();
        let mut used = BTreeSet::from(["datasource".to_owned()]);
        for query in board.panels().into_iter().flat_map(|panel| panel.queries) {
            let names = query.split('$').skip(1).map(|rest| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                rest[..end.unwrap_or(rest.len())].to_owned()
            });
            // Grafana's own variables begin with two underscores.
            used.extend(names.filter(|name| !name.starts_with("__")));
        }
        assert!(defined.iter().eq(used.iter()), "{}: {defined:?} {used:?}", board.name);
    }
}

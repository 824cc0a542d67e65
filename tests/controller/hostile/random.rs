//! Any text in any text field, any pairs in any map.

use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use prost_reflect::{Kind, MapKey, ReflectMessage, Value};

use crate::hostile::base;
use crate::hostile::every::{complaint, expected, spoil};
use crate::hostile::field::{Path, paths};
use crate::hostile::rpc::{call, new_stage};

/// Any text: mostly short, sometimes too long, with any characters.
fn text() -> impl Strategy<Value = String> {
    let short = proptest::collection::vec(any::<char>(), 0..60);
    let long = proptest::collection::vec(any::<char>(), 120..140);
    prop_oneof![
        6 => short.prop_map(String::from_iter),
        1 => long.prop_map(String::from_iter),
        2 => "[a-z]{1,3}-[0-9a-zA-Z.&=/ -]{0,20}",
    ]
}

#[test]
fn no_text_and_no_map_in_any_field_gets_past_its_rule() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let bases = runtime.block_on(base::served());
    let places: Vec<(usize, String)> = bases
        .iter()
        .enumerate()
        .flat_map(|(number, base)| {
            let paths = paths(&base.message.descriptor()).into_iter();
            let is_text = |path: &Path| path.field().is_map() || path.field().kind() == Kind::String;
            let texts = paths.filter(is_text);
            let there = texts.filter(|path| path.owner(&mut base.message.clone()).is_some());
            there.map(move |path| (number, path.text())).collect::<Vec<_>>()
        })
        .collect();
    let pairs = proptest::collection::hash_map(text(), text(), 0..4);
    let strategy = (proptest::sample::select(places), text(), pairs);
    let config = Config {
        cases: 600,
        failure_persistence: None,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&strategy, |((number, place), text, pairs)| {
        let complaint = runtime.block_on(async {
            let stage = new_stage();
            base::ids(&stage).await;
            let base = &bases[number];
            let paths = paths(&base.message.descriptor());
            let path = paths.iter().find(|path| path.text() == place).unwrap();
            let value = value(path.field(), text, pairs);
            let spoilt = spoil(base, path, Some(&value))?;
            let outcome = call(&stage, spoilt.rpc, &spoilt.message).await;
            let expect = expected(spoilt.rpc, path, Some(&value), &outcome);
            let complaint = complaint(path, expect, &outcome)?;
            Some(format!("{} {place}: {complaint}", spoilt.rpc))
        });
        prop_assert!(complaint.is_none(), "{}", complaint.unwrap());
        Ok(())
    });
    outcome.unwrap();
}

fn value(field: &prost_reflect::FieldDescriptor, text: String, pairs: HashMap<String, String>) -> Value {
    if field.is_map() {
        let pair = |(key, value)| (MapKey::String(key), Value::String(value));
        return Value::Map(pairs.into_iter().map(pair).collect());
    }
    if field.is_list() {
        return Value::List(vec![Value::String(text)]);
    }
    Value::String(text)
}

//! Invalid values of fields.

use std::collections::HashMap;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, Value};

/// Texts of attackers and of faulty callers.
pub(crate) const TEXTS: [&str; 18] = [
    "",
    " ",
    "\u{0}",
    "d-\u{0}1",
    "name\u{7}\u{1b}[31m",
    "line\r\nX-Injected: yes",
    "../../../../etc/passwd",
    "d-../../x",
    "/dev/sda",
    "d-1&Action=DeleteDisk&DiskId=d-2",
    "d-1\",\"d-2",
    "'; DROP TABLE disks; --",
    "$(reboot)`reboot`",
    "%00%2e%2e%2f",
    "{{7*7}}${jndi:ldap://x}",
    "ディスク💾é\u{301}\u{202e}",
    "*",
    "null",
];

/// Values for the field; none removes the field.
pub(crate) fn values(field: &FieldDescriptor) -> Vec<Option<Value>> {
    let mut values = vec![None];
    if field.is_map() {
        values.extend(maps().into_iter().map(|map| Some(Value::Map(map))));
        return values;
    }
    let kind = field.kind();
    if field.is_list() {
        let one = |value: Value| Some(Value::List(vec![value]));
        match &kind {
            Kind::Message(inner) => {
                values.push(one(Value::Message(DynamicMessage::new(inner.clone()))));
            }
            _ => {
                values.extend(texts().into_iter().map(|text| one(Value::String(text))));
                let many = vec![Value::String("noatime".to_owned()); 10_000];
                values.push(Some(Value::List(many)));
            }
        }
        return values;
    }
    match &kind {
        Kind::String => values.extend(texts().into_iter().map(|text| Some(Value::String(text)))),
        Kind::Int64 => {
            values.extend([-1, i64::MIN, i64::MAX].map(|bytes| Some(Value::I64(bytes))));
        }
        Kind::Int32 => values.extend([-1, i32::MIN].map(|count| Some(Value::I32(count)))),
        Kind::Enum(_) => {
            values.extend([0, -1, 99, i32::MAX].map(|n| Some(Value::EnumNumber(n))));
        }
        Kind::Bool => values.extend([true, false].map(|so| Some(Value::Bool(so)))),
        Kind::Message(inner) if inner.fields().len() > 0 => {
            values.push(Some(Value::Message(DynamicMessage::new(inner.clone()))));
        }
        Kind::Message(_) => {}
        kind => panic!("{kind:?} has no invalid values"),
    }
    values
}

fn texts() -> Vec<String> {
    let mut texts: Vec<String> = TEXTS.map(str::to_owned).into();
    texts.push("x".repeat(129));
    texts.push(format!("d-{}", "1".repeat(127)));
    texts.push("é".repeat(65));
    texts.push("x".repeat(100_000));
    texts
}

fn maps() -> Vec<HashMap<MapKey, Value>> {
    let map = |pairs: Vec<(String, String)>| {
        let pair = |(key, value)| (MapKey::String(key), Value::String(value));
        pairs.into_iter().map(pair).collect()
    };
    let mut maps: Vec<_> = TEXTS
        .iter()
        .map(|text| map(vec![((*text).to_owned(), "x".to_owned())]))
        .collect();
    maps.push(map(vec![("x".repeat(5000), "x".to_owned())]));
    maps.push(map(vec![("odd".to_owned(), "x".repeat(100_000))]));
    let many = (0..10_000).map(|n| (format!("key-{n}"), "x".to_owned()));
    maps.push(map(many.collect()));
    maps
}

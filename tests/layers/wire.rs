//! Compares `proto/csi.proto` with the wire facts in `tests/data`, line by line and both ways.

use std::collections::BTreeSet;
use std::path::Path;

use prost_reflect::{
    DescriptorPool, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
};

const PACKAGE: &str = "csi.v1.";
const FACTS: &str = include_str!("../data/csi-1.13.0.wire.txt");

#[test]
fn the_compiled_descriptors_equal_the_wire_facts() {
    let differences = differences(&stated(FACTS), &compiled(&pool()));
    assert!(differences.is_empty(), "proto/csi.proto:\n{}", differences.join("\n"));
}

#[test]
fn the_wire_facts_are_not_empty() {
    let facts = stated(FACTS);
    for kind in ["rpc ", "message ", "field ", "value ", "reserved ", "extension "] {
        assert!(
            facts.iter().any(|fact| fact.starts_with(kind)),
            "no line of kind {kind:?}"
        );
    }
}

#[test]
fn a_changed_line_is_reported_for_both_sides() {
    let compiled = compiled(&pool());
    let mutated = FACTS.replacen("  2 limit_bytes: int64", "  3 limit_bytes: int64", 1);
    let (missing, extra) = ("missing: field CapacityRange 3", "extra: field CapacityRange 2");
    let expected = [missing, extra].map(|field| format!("{field} limit_bytes: int64"));
    assert_eq!(differences(&stated(&mutated), &compiled), expected);
}

/// `build.rs` omits Debug of messages by the field name, and of top-level messages only. CSI marks secrets by the
/// option.
#[test]
fn fields_named_secrets_of_top_level_messages_are_the_fields_with_the_option_csi_secret() {
    for message in messages(&pool()) {
        for field in message.fields() {
            let is_secret = is_secret(&field);
            assert_eq!(field.name() == "secrets", is_secret, "{}", field.full_name());
            let is_nested = message.parent_message().is_some();
            assert!(
                !(is_secret && is_nested),
                "{}: Debug would print it",
                message.full_name()
            );
        }
    }
}

fn pool() -> DescriptorPool {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    protox::Compiler::new([proto])
        .expect("proto/ exists")
        .include_imports(true)
        .open_file("csi.proto")
        .expect("csi.proto compiles")
        .descriptor_pool()
}

/// The facts that only `stated` has, then those that only `compiled` has.
fn differences(stated: &BTreeSet<String>, compiled: &BTreeSet<String>) -> Vec<String> {
    let missing = stated.difference(compiled).map(|l| format!("missing: {l}"));
    let extra = compiled.difference(stated).map(|l| format!("extra: {l}"));
    missing.chain(extra).collect()
}

/// The facts file, one self-contained line per fact.
fn stated(text: &str) -> BTreeSet<String> {
    let mut message = "";
    let mut facts = BTreeSet::new();
    for line in text.lines() {
        let (line, reserved) = line.split_once(" reserved=").unwrap_or((line, ""));
        let reserved = reserved.split(',').filter(|number| !number.is_empty());
        if let Some(list) = line.strip_prefix("# field-option extensions: ") {
            facts.extend(list.split(", ").map(|item| format!("extension {item}")));
        } else if let Some(name) = line.strip_prefix("message ") {
            message = name;
            facts.insert(line.to_owned());
            facts.extend(reserved.map(|number| format!("reserved {name} {number}")));
        } else if let Some((name, values)) = enumeration(line) {
            facts.extend(values.split(", ").map(|value| format!("value {name} {value}")));
            facts.extend(reserved.map(|number| format!("reserved {name} {number}")));
        } else if let Some(field) = line.strip_prefix("  ") {
            facts.insert(format!("field {message} {field}"));
        } else if line.starts_with("rpc ") {
            facts.insert(line.to_owned());
        } else {
            assert!(line.is_empty() || line.starts_with('#'), "not a fact: {line}");
        }
    }
    facts
}

fn enumeration(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("enum ")?.split_once(": ")
}

/// The facts of the compiled file, in the same format.
fn compiled(pool: &DescriptorPool) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for service in pool.services() {
        facts.extend(service.methods().map(|method| rpc(&method)));
    }
    for message in messages(pool) {
        let name = short(message.full_name());
        facts.insert(format!("message {name}"));
        facts.extend(message.fields().map(|f| format!("field {name} {}", field(&f))));
        let reserved = message.reserved_ranges().flatten();
        facts.extend(reserved.map(|number| format!("reserved {name} {number}")));
    }
    for enumeration in pool.all_enums().filter(|e| is_ours(e.full_name())) {
        let name = short(enumeration.full_name());
        facts.extend(values(&enumeration));
        let reserved = enumeration.reserved_ranges().flatten();
        facts.extend(reserved.map(|number| format!("reserved {name} {number}")));
    }
    let ours = pool.all_extensions().filter(|e| is_ours(e.full_name()));
    facts.extend(ours.map(|e| extension(&e)));
    facts
}

fn messages(pool: &DescriptorPool) -> Vec<MessageDescriptor> {
    pool.all_messages()
        .filter(|message| is_ours(message.full_name()) && !message.is_map_entry())
        .collect()
}

fn rpc(method: &MethodDescriptor) -> String {
    let stream = |is: bool| if is { "stream " } else { "" };
    format!(
        "rpc {}/{}: {}{} -> {}{}",
        method.parent_service().full_name(),
        method.name(),
        stream(method.is_client_streaming()),
        short(method.input().full_name()),
        stream(method.is_server_streaming()),
        short(method.output().full_name()),
    )
}

fn field(field: &FieldDescriptor) -> String {
    let kind = if field.is_map() {
        let Kind::Message(entry) = field.kind() else {
            panic!("{}: a map without an entry type", field.full_name())
        };
        let key = entry.map_entry_key_field().kind();
        let value = entry.map_entry_value_field().kind();
        format!("map<{},{}>", type_name(&key), type_name(&value))
    } else if field.is_list() {
        format!("repeated {}", type_name(&field.kind()))
    } else {
        type_name(&field.kind())
    };
    let mut line = format!("{} {}: {kind}", field.number(), field.name());
    if let Some(oneof) = field.containing_oneof() {
        line += &format!(" oneof={}", oneof.name());
    }
    if is_secret(field) {
        line += " secret";
    }
    line
}

fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(enumeration) => enumeration.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

fn values(enumeration: &EnumDescriptor) -> Vec<String> {
    let name = short(enumeration.full_name());
    enumeration
        .values()
        .map(|value| format!("value {name} {}={}", value.name(), value.number()))
        .collect()
}

fn extension(extension: &ExtensionDescriptor) -> String {
    format!(
        "extension {}={} extends .{}",
        extension.name(),
        extension.number(),
        extension.containing_message().full_name()
    )
}

fn is_secret(field: &FieldDescriptor) -> bool {
    let csi_secret = field
        .parent_pool()
        .get_extension_by_name("csi.v1.csi_secret")
        .expect("csi.proto declares csi_secret");
    field.options().get_extension(&csi_secret).as_bool() == Some(true)
}

fn is_ours(full_name: &str) -> bool {
    full_name.starts_with(PACKAGE)
}

/// The name relative to the package, as in the facts.
fn short(full_name: &str) -> &str {
    full_name.strip_prefix(PACKAGE).unwrap_or(full_name)
}

//! XML responses, for callers that do not request JSON: the same fields as elements, one element
//! for each member of a list. Null fields are omitted.

use serde_json::Value;

pub(super) fn document(root: &str, value: &Value) -> String {
    let mut text = "<?xml version='1.0' encoding='UTF-8'?>".to_owned();
    element(root, value, &mut text);
    text
}

fn element(name: &str, value: &Value, out: &mut String) {
    if let Value::Array(members) = value {
        for member in members {
            element(name, member, out);
        }
        return;
    }
    let mut inner = String::new();
    match value {
        Value::Null => return,
        Value::Object(fields) => {
            for (name, value) in fields {
                element(name, value, &mut inner);
            }
        }
        Value::String(text) => inner = escaped(text),
        other => inner = other.to_string(),
    }
    out.push_str(&format!("<{name}>{inner}</{name}>"));
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_become_repeated_elements_and_null_is_omitted() {
        let value = json!({
            "Disks": {"Disk": [{"Size": 20, "Portable": true}, {"DiskName": "a<b&\"c\""}]},
            "Tags": {"Tag": []},
            "Message": null,
        });
        assert_eq!(
            document("R", &value),
            "<?xml version='1.0' encoding='UTF-8'?><R>\
             <Disks><Disk><Portable>true</Portable><Size>20</Size></Disk>\
             <Disk><DiskName>a&lt;b&amp;\"c\"</DiskName></Disk></Disks>\
             <Tags></Tags></R>"
        );
    }
}

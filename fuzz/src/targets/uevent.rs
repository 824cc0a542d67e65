//! Messages of the kernel about devices, against a second parser of their fields.

use std::collections::HashMap;

use diskplugin::linux::fuzzing;

pub fn run(data: &[u8]) {
    let fields = data.split(|byte| *byte == 0);
    let mut variables: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
    for field in fields {
        if let Some(at) = field.iter().position(|byte| *byte == b'=') {
            variables.entry(&field[..at]).or_default().push(&field[at + 1..]);
        }
    }
    let has = |name: &[u8], value: &[u8]| variables.get(name).is_some_and(|values| values.contains(&value));
    let expected = has(b"SUBSYSTEM", b"block") && has(b"DEVTYPE", b"disk");
    assert_eq!(fuzzing::is_of_disk(data), expected);
}

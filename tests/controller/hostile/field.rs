//! The path of a field in a message.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

/// A field after its parents. In a repeated message, it is the field of the first element.
#[derive(Debug, Clone)]
pub(crate) struct Path(Vec<FieldDescriptor>);

impl Path {
    pub(crate) fn field(&self) -> &FieldDescriptor {
        self.0.last().expect("a path has a field")
    }

    /// `volume_capabilities.mount.fs_type`.
    pub(crate) fn text(&self) -> String {
        let names: Vec<_> = self.0.iter().map(FieldDescriptor::name).collect();
        names.join(".")
    }

    /// The message that has the field; `None` if one of its parents is not set.
    pub(crate) fn owner<'a>(&self, message: &'a mut DynamicMessage) -> Option<&'a mut DynamicMessage> {
        let (_, parents) = self.0.split_last()?;
        let mut owner = message;
        for step in parents {
            if !owner.has_field(step) {
                return None;
            }
            let value = match owner.get_field_mut(step) {
                Value::List(list) => list.first_mut()?,
                value => value,
            };
            owner = value.as_message_mut()?;
        }
        Some(owner)
    }
}

/// All fields of a message and of the messages in it.
pub(crate) fn paths(message: &MessageDescriptor) -> Vec<Path> {
    let mut paths = Vec::new();
    collect(message, &mut Vec::new(), &mut paths);
    paths
}

fn collect(message: &MessageDescriptor, path: &mut Vec<FieldDescriptor>, paths: &mut Vec<Path>) {
    for field in message.fields() {
        path.push(field.clone());
        paths.push(Path(path.clone()));
        if let Kind::Message(inner) = field.kind()
            && !field.is_map()
        {
            collect(&inner, path, paths);
        }
        path.pop();
    }
}

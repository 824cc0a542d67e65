//! The Deployments and DaemonSets that run the driver.

use serde_json::Value;

use super::objects::segment;
use super::{Cluster, Result};
use crate::model::DriverName;

/// A Deployment or DaemonSet that runs a driver of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    pub namespace: String,
    pub name: String,
    /// The images of its containers.
    pub images: Vec<String>,
    pub has_no_replicas: bool,
}

impl Workload {
    /// The `deployments` or `daemonsets` of the driver, in this namespace or in all.
    pub async fn list(
        cluster: &Cluster,
        plural: &str,
        driver: &DriverName,
        namespace: Option<&str>,
    ) -> Result<Vec<Self>> {
        let namespace = namespace.map_or_else(String::new, |name| format!("namespaces/{}/", segment(name)));
        let objects = cluster.objects(&format!("/apis/apps/v1/{namespace}{plural}")).await?;
        Ok(objects.iter().flatten().filter_map(|one| of(one, driver)).collect())
    }
}

fn of(object: &Value, driver: &DriverName) -> Option<Workload> {
    let containers = object.pointer("/spec/template/spec/containers")?.as_array()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    containers.iter().any(|one| runs(one, driver)).then(|| Workload {
        namespace: text(&object["metadata"]["namespace"]),
        name: text(&object["metadata"]["name"]),
        images: containers.iter().map(|one| text(&one["image"])).collect(),
        has_no_replicas: object["spec"]["replicas"] == 0,
    })
}

/// Whether the container has `--driver-name` with this name.
fn runs(container: &Value, driver: &DriverName) -> bool {
    let args = container["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let words: Vec<_> = args.flat_map(|arg| arg.splitn(2, '=')).collect();
    words
        .windows(2)
        .any(|pair| pair[0] == "--driver-name" && pair[1] == driver.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_is_found_by_its_flag_and_has_no_replicas_only_if_it_says_0() {
        let object = |args: Value, replicas: Value| {
            let containers = json!([{"image": "image", "args": args}]);
            let spec = json!({"replicas": replicas, "template": {"spec": {"containers": containers}}});
            json!({"metadata": {"namespace": "storage", "name": "controller"}, "spec": spec})
        };
        let driver: DriverName = "a.b".parse().unwrap();
        for (args, replicas, expected) in [
            (json!(["--driver-name=a.b"]), json!(0), Some(true)),
            (json!(["--driver-name", "a.b"]), json!(2), Some(false)),
            (json!(["--driver-name=a.b"]), Value::Null, Some(false)),
            (json!(["--driver-name=other"]), json!(0), None),
        ] {
            let found = of(&object(args.clone(), replicas), &driver);
            assert_eq!(found.map(|one| one.has_no_replicas), expected, "{args}");
        }
    }
}

//! API paths of objects.

/// Core group, in a namespace.
pub(crate) fn core(namespace: &str, kind: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{kind}")
}

/// Core group, cluster-scoped.
pub(crate) fn cluster_scoped(kind: &str) -> String {
    format!("/api/v1/{kind}")
}

/// Group `storage.k8s.io`, cluster-scoped.
pub(crate) fn storage(kind: &str) -> String {
    format!("/apis/storage.k8s.io/v1/{kind}")
}

/// Another group, cluster-scoped.
pub(crate) fn group(group: &str, kind: &str) -> String {
    format!("/apis/{group}/v1/{kind}")
}

/// Another group, in a namespace.
pub(crate) fn grouped(group: &str, namespace: &str, kind: &str) -> String {
    format!("/apis/{group}/v1/namespaces/{namespace}/{kind}")
}

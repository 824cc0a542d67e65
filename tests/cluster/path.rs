//! Where objects are in the API.

/// Of the core group, in a namespace.
pub(crate) fn core(namespace: &str, kind: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{kind}")
}

/// Of the core group, of the whole cluster.
pub(crate) fn whole(kind: &str) -> String {
    format!("/api/v1/{kind}")
}

/// Of `storage.k8s.io`.
pub(crate) fn storage(kind: &str) -> String {
    format!("/apis/storage.k8s.io/v1/{kind}")
}

/// Of another group, of the whole cluster.
pub(crate) fn group(group: &str, kind: &str) -> String {
    format!("/apis/{group}/v1/{kind}")
}

/// Of another group, in a namespace.
pub(crate) fn grouped(group: &str, namespace: &str, kind: &str) -> String {
    format!("/apis/{group}/v1/namespaces/{namespace}/{kind}")
}

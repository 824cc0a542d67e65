//! Identities of a cluster: the certificate of the API server, the key of ServiceAccount tokens, and static tokens of
//! other users.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::plane::NAMESPACE;

/// The user of the kubelet of the first node.
pub(crate) const WORKER: &str = "system:node:worker";
/// The user of the second kubelet.
pub(crate) const SECOND_WORKER: &str = "system:node:second";
/// The service address of the API server: the first one of the service range.
pub(crate) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// Users with static tokens, and the group of their permissions.
const USERS: [(&str, &str); 5] = [
    ("admin", "system:masters"),
    (WORKER, "system:nodes"),
    (SECOND_WORKER, "system:nodes"),
    ("system:kube-controller-manager", ""),
    ("system:kube-scheduler", ""),
];

/// The files of keys and certificates, in one directory.
#[derive(Debug)]
pub(crate) struct Keys {
    directory: PathBuf,
    /// The CA certificate as PEM.
    pub(crate) authority: String,
    tokens: Vec<(&'static str, String)>,
}

impl Keys {
    /// Creates all files for a server at this address.
    pub(crate) fn make(directory: &Path, ip: Ipv4Addr) -> Self {
        let (authority, server) = certificates(ip);
        let keys = Self {
            directory: directory.to_owned(),
            authority,
            tokens: USERS.map(|(user, _)| (user, random())).to_vec(),
        };
        let key = KeyPair::generate().expect("a key can be generated");
        keys.write("accounts.key", &key.serialize_pem());
        keys.write("accounts.pub", &key.public_key_pem());
        keys.write("ca.crt", &keys.authority);
        keys.write("server.crt", &server.0);
        keys.write("server.key", &server.1);
        let users = USERS.iter().zip(&keys.tokens);
        let lines = users.map(|((user, group), (_, token))| match *group {
            "" => format!("{token},{user},{user}\n"),
            group => format!("{token},{user},{user},{group}\n"),
        });
        keys.write("tokens.csv", &lines.collect::<String>());
        keys
    }

    /// The path of one of the files.
    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// The token of a user.
    pub(crate) fn token(&self, user: &str) -> &str {
        let found = self.tokens.iter().find(|(name, _)| *name == user);
        &found.expect("a user of the list").1
    }

    /// Writes a kubeconfig with this token and the release's namespace, and returns its path.
    pub(crate) fn kubeconfig(&self, name: &str, server: &str, token: &str) -> String {
        self.kubeconfig_in(NAMESPACE, name, server, token)
    }

    /// Writes a kubeconfig with another namespace, and returns its path.
    pub(crate) fn kubeconfig_in(&self, namespace: &str, name: &str, server: &str, token: &str) -> String {
        let config: Value = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": self.path("ca.crt")}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
            "current-context": "x",
        });
        let file = format!("{name}.kubeconfig");
        self.write(&file, &config.to_string());
        self.path(&file)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.directory.join(name), content).expect("the directory can be written");
    }
}

fn random() -> String {
    Uuid::new_v4().simple().to_string()
}

/// A CA certificate, and the server's certificate and key signed by it, as PEM.
fn certificates(ip: Ipv4Addr) -> (String, (String, String)) {
    let valid = "a certificate can be generated";
    let key = KeyPair::generate().expect(valid);
    let mut params = CertificateParams::new(Vec::new()).expect(valid);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = params.self_signed(&key).expect(valid);
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().expect(valid);
    let names = [ip, SERVICE, Ipv4Addr::LOCALHOST].map(|ip| ip.to_string());
    let params = CertificateParams::new(names).expect(valid);
    let server = params.signed_by(&own, &issuer).expect(valid);
    (authority.pem(), (server.pem(), own.serialize_pem()))
}

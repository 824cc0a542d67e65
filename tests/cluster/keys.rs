//! Who is who in a cluster: the certificate of the API server, the key of ServiceAccounts' tokens, and the
//! tokens of those that are no ServiceAccount.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::plane::NAMESPACE;

/// The kubelet of the one node that has one.
pub(crate) const WORKER: &str = "system:node:worker";
/// That of a second one.
pub(crate) const SECOND_WORKER: &str = "system:node:second";
/// Where pods find the API server: the first address of the services' range.
pub(crate) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// Users that the API server knows by a token, and the group that gives them their rights.
const USERS: [(&str, &str); 5] = [
    ("admin", "system:masters"),
    (WORKER, "system:nodes"),
    (SECOND_WORKER, "system:nodes"),
    ("system:kube-controller-manager", ""),
    ("system:kube-scheduler", ""),
];

/// What was made, as files of one directory.
#[derive(Debug)]
pub(crate) struct Keys {
    directory: PathBuf,
    /// The certificate that all must trust, as PEM.
    pub(crate) authority: String,
    tokens: Vec<(&'static str, String)>,
}

impl Keys {
    /// Makes all of it for a server at this address.
    pub(crate) fn make(directory: &Path, ip: Ipv4Addr) -> Self {
        let (authority, server) = certificates(ip);
        let keys = Self {
            directory: directory.to_owned(),
            authority,
            tokens: USERS.map(|(user, _)| (user, random())).to_vec(),
        };
        let key = KeyPair::generate().expect("a key can be made");
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

    /// Writes a kubeconfig with this token; its path. Who has it is in the release's namespace, as its pods are.
    pub(crate) fn kubeconfig(&self, name: &str, server: &str, token: &str) -> String {
        self.kubeconfig_in(NAMESPACE, name, server, token)
    }

    /// The same for somebody in another namespace.
    pub(crate) fn kubeconfig_in(
        &self,
        namespace: &str,
        name: &str,
        server: &str,
        token: &str,
    ) -> String {
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

/// An authority, and with its signature the server's certificate and key, all as PEM.
fn certificates(ip: Ipv4Addr) -> (String, (String, String)) {
    let fine = "a certificate can be made";
    let key = KeyPair::generate().expect(fine);
    let mut params = CertificateParams::new(Vec::new()).expect(fine);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = params.self_signed(&key).expect(fine);
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().expect(fine);
    let names = [ip, SERVICE, Ipv4Addr::LOCALHOST].map(|ip| ip.to_string());
    let params = CertificateParams::new(names).expect(fine);
    let server = params.signed_by(&own, &issuer).expect(fine);
    (authority.pem(), (server.pem(), own.serialize_pem()))
}

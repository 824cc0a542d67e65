//! Every manifest of the repository is accepted by this API server.

use std::path::{Path, PathBuf};

use crate::common::process::{Ended, Start};
use crate::helm::file;
use crate::scene::Scene;

/// Manifests of the chart for each variant of values.
pub(crate) async fn renders(scene: &Scene<'_>) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let variants = manifests(Path::new(&file("tests/helm/variants")));
    for variant in variants {
        let name = variant.file_stem().expect("the file has a name").display().to_string();
        let render = Start::with_pdeathsig(&file("tests/helm/render")).args([&name]);
        let Ended { code, stdout, stderr } = render.ended().await;
        assert_eq!(code, Some(0), "{name}: {stderr}");
        std::fs::write(folder.path().join(format!("{name}.yaml")), stdout).expect("a temporary file");
    }
    accepted(scene, folder.path(), 6).await;
}

/// Manifests of the examples.
pub(crate) async fn examples(scene: &Scene<'_>) {
    accepted(scene, Path::new(&file("examples")), 14).await;
}

async fn accepted(scene: &Scene<'_>, folder: &Path, minimum: usize) {
    let files = manifests(folder);
    assert!(files.len() >= minimum, "manifests are missing: {files:?}");
    let mut rejected = Vec::new();
    let copies = tempfile::tempdir().expect("a temporary directory");
    for (number, file) in files.iter().enumerate() {
        let text = std::fs::read_to_string(file).expect("the file can be read");
        let copy = copies.path().join(format!("{number}.yaml"));
        std::fs::write(&copy, applicable(&text)).expect("a temporary file");
        let (file, copy) = (file.display(), copy.display().to_string());
        let apply = "apply --server-side --dry-run=server --validate=strict --force-conflicts --filename";
        let args = apply.split(' ').chain([copy.as_str()]);
        let logs = scene.cluster.plane.kubectl(args).await;
        if logs.code != Some(0) {
            rejected.push(format!("{file}: {}", logs.stderr));
        }
    }
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
}

/// The manifests without the parts that need the CRDs of the Prometheus Operator (tests/helm decodes its objects into
/// the operator's types), the namespace of a monitoring system, or the ServiceAccount of a chart that is not installed.
fn applicable(manifests: &str) -> String {
    let documents = manifests.split("\n---\n");
    let known = documents.filter(|document| !document.contains("apiVersion: monitoring.coreos.com/"));
    let known: Vec<&str> = known.collect();
    let text = known
        .join("\n---\n")
        .replace("\n  namespace: \"monitoring\"\n", "\n  namespace: storage\n");
    text.replace(
        "serviceAccountName: \"disks-controller\"\n",
        "serviceAccountName: default\n",
    )
}

/// Every YAML below a folder.
fn manifests(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder exists");
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files.extend(manifests(&path));
        } else if path.extension().is_some_and(|end| end == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Each container of the controller responds to the liveness probe of the chart.
pub(crate) async fn probes(scene: &Scene<'_>) {
    let replica = scene.cluster.replica.lock().await;
    let replica = replica.as_ref().expect("a pod runs");
    let http = reqwest::Client::builder()
        .timeout(std::time::Duration::from_secs(30))
        .no_proxy()
        .build()
        .unwrap();
    let mut count = 0;
    let metric = metric();
    for container in &replica.containers {
        let server = || {
            format!(
                "http://{}",
                container.health.as_ref().expect("the container has a port")
            )
        };
        for probe in &container.probes {
            let url = format!("{}{probe}", server());
            crate::wait::until(&format!("{} responds to {probe}", container.name), async || {
                let response = http.get(&url).send().await.ok()?;
                response.status().is_success().then_some(())
            })
            .await;
            count += 1;
        }
        if container.name == "diskplugin" {
            continue;
        }
        let url = format!("{}/metrics", server());
        let what = format!("{} exports the metric", container.name);
        crate::wait::until(&what, async || {
            let text = http.get(&url).send().await.ok()?.text().await.ok()?;
            text.lines()
                .any(|line| metric.iter().all(|part| line.contains(part)))
                .then_some(())
        })
        .await;
    }
    assert_eq!(count, 2, "the probes of the driver");
}

/// The metric of each sidecar and its labels, as documented in the reference.
fn metric() -> Vec<String> {
    const PAGE: &str = "docs/reference/health.md";
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE));
    let page = page.expect("the page exists");
    let (_, rest) = page
        .split_once("## Metrics")
        .expect("the page has a section on metrics");
    let (section, _) = rest.split_once("\n## ").unwrap_or((rest, ""));
    let words = section.split('`').skip(1).step_by(2);
    let words = words.filter(|word| word.contains('_') && !word.contains('.'));
    let words: Vec<String> = words.map(str::to_owned).collect();
    assert!(words.len() == 4, "{PAGE}: {words:?}");
    words
}

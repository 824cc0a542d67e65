//! `--help` documents every flag.

use crate::common::process::diskplugin;

const SERVE: &str = "--driver-name --endpoint --drain-timeout --http-address --http-tls-cert-file --http-tls-key-file \
    --log-format --log-level";
const PLACE: &str = "--region --zone --metadata-endpoint --metadata-token-only";
const CLOUD: &str = "--cluster-id";
const ACCESS: &str = "--rate-limits --ecs-endpoint --network --signature --credentials \
    --credentials-dir --oidc-role-arn --oidc-provider-arn --oidc-token-file --instance-role \
    --assume-role-arn --assume-role-external-id --role-session-name --role-duration --sts-endpoint";
const NODE: &str = "--node-id --max-volumes-per-node --instance-type --instance-types-file \
    --instance-categories --tool-memory --kubelet-dir --state-dir \
    --registration-dir --kubelet-socket";
const KUBERNETES: &str = "--metrics-inventory-interval --list-volumes-published-nodes --status-page --http-authorization --http-kubeconfig --instance-types-config-map --events --startup-taint --metrics-orphans-interval --kubeconfig \
    --leader-election --leader-election-identity --leader-election-lease-duration --leader-election-namespace \
    --leader-election-renew-deadline --leader-election-retry-period --standby-socket";
const EXPLAIN: &str = "--driver-name --size --live --output --log-format --log-level";
const FAKE: &str = "--zones --nodes --seed --access-key-id --access-key-secret --create-delay \
    --attach-delay --detach-delay --resize-delay --cut-delay --snapshot-delay --delete-delay \
    --load-delay --latency --stale --stale-share --stale-jumping --throttle --out-of-stock --disk-quantity \
    --never-attached --missing-is-error --parallel-attach --ram-role --metadata-token-required \
    --back-with --device-dir --config";

#[tokio::test]
async fn the_help_of_a_role_documents_exactly_its_flags() {
    let roles: [(&str, &[&str]); 11] = [
        ("controller", &[SERVE, PLACE, ACCESS, CLOUD, KUBERNETES]),
        ("node", &[SERVE, PLACE, NODE, "--device-dir --require-shared-mounts"]),
        (
            "all-in-one",
            &[
                SERVE,
                PLACE,
                ACCESS,
                CLOUD,
                NODE,
                "--cloud --metrics-inventory-interval --list-volumes-published-nodes --status-page --http-authorization --http-kubeconfig",
                FAKE,
            ],
        ),
        ("explain", &[EXPLAIN, PLACE, ACCESS]),
        (
            "timeline",
            &["--url --token-file --namespace --kubeconfig --context --driver-name --output --log-format --log-level"],
        ),
        (
            "bundle",
            &[
                "--out --volume --since --url --token-file --namespace --kubeconfig --context --driver-name \
                 --log-format --log-level",
            ],
        ),
        (
            "doctor",
            &[
                PLACE,
                "--scope --output --driver-name --kubeconfig --context --kubelet-dir --state-dir --log-format --log-level",
                ACCESS,
            ],
        ),
        (
            "orphans",
            &[
                PLACE,
                ACCESS,
                CLOUD,
                "--driver-name --log-format --log-level --kubeconfig --context --min-age --class --output \
                 --allow-unreferenced --delete --older-than --yes",
            ],
        ),
        (
            "pre-stop-hook",
            &["--node-name --timeout --log-file --kubeconfig --driver-name --log-format --log-level"],
        ),
        ("mock-cloud", &["--listen --region --log-format --log-level", FAKE]),
        ("demo", &["--fs-type --signature --keep --log-format --log-level"]),
    ];
    for (role, flags) in roles {
        let ended = diskplugin([role, "--help"]).ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let mut wanted: Vec<_> = flags.iter().flat_map(|f| f.split_whitespace()).collect();
        wanted.push("--help");
        wanted.sort_unstable();
        assert_eq!(shown(&ended.stdout), wanted, "{role}");
    }
}

#[tokio::test]
async fn help_and_version_succeed() {
    for line in [["--help"], ["--version"]] {
        let ended = diskplugin(line).ended().await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        assert!(ended.stdout.contains("diskplugin"), "{}", ended.stdout);
    }
}

/// The flags in a help text, sorted. Each begins a line, and its description is on the next line.
fn shown(help: &str) -> Vec<&str> {
    let lines: Vec<_> = help.lines().collect();
    let mut flags: Vec<_> = lines
        .windows(2)
        .filter_map(|pair| {
            let flag = pair[0].split_whitespace().find(|word| word.starts_with("--"))?;
            let begins = pair[0].trim_start().starts_with(['-']) && pair[0].starts_with("  ");
            let is_flag = begins && !pair[0].trim_start().starts_with("- ");
            assert!(!is_flag || !pair[1].trim().is_empty(), "no description of {flag}");
            is_flag.then_some(flag)
        })
        .collect();
    flags.sort_unstable();
    flags
}

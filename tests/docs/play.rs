//! Executes the commands of the pages.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::linux::{Command, Exec, ProcessExec};

use crate::page::{Page, page, pages, read, root};
use crate::report;
use crate::script::{ELSEWHERE, Step, mismatches, script, session};

/// The fake cloud's address in the pages; here each session has its own.
const ADDRESS: &str = "127.0.0.1:8480";

/// Where make builds the programs in Go.
const TOOLS: &str = "tests/tools/bin";

/// Timeout of a session. The demo takes a dozen seconds.
const TIMEOUT: Duration = Duration::from_secs(90);

#[tokio::test]
async fn commands_of_the_pages_print_the_output_in_the_pages() {
    let mut played = 0;
    let here = |page: &&Page| !needs_root(page) && !needs_cluster(page);
    for page in pages().iter().filter(here) {
        let steps = session(page);
        if steps.iter().any(|step| step.typed.contains("grpcurl")) && !has_grpcurl(page) {
            continue;
        }
        played += steps.len();
        report(play(page, &steps).await);
    }
    assert!(played > 20, "only {played} steps were played");
}

#[tokio::test]
async fn the_demo_prints_the_output_in_the_readme() {
    let page = page("README.md");
    assert!(needs_root(&page));
    if can_make_devices().await {
        report(play(&page, &session(&page)).await);
    }
}

#[test]
fn lines_that_are_executed_elsewhere_are_in_the_pages_and_in_the_makefile() {
    let pages = pages();
    let lines: Vec<&str> = pages
        .iter()
        .flat_map(|page| &page.blocks)
        .flat_map(|block| block.text.lines())
        .map(|line| line.trim_start_matches("$ "))
        .collect();
    let missing = ELSEWHERE.iter().filter(|line| !lines.contains(line));
    report(missing.map(|line| format!("no page has {line}")));
    let makefile = read("Makefile");
    let recipe = |name: &str| {
        let rule = format!("\n{name}:");
        let rest = makefile.split_once(&rule).expect("the target exists").1;
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    };
    let clippy = "cargo clippy --locked";
    for (target, commands) in [
        ("demo", &["cargo run --locked -- demo $$ARGS"][..]),
        ("sanity", &["tests/sanity/run $$ARGS"]),
        ("lint", &["cargo fmt --all --check", "scripts/msrv", "scripts/deny"]),
        ("lint", &[&format!("{clippy} --all-targets -- -D warnings")]),
        (
            "lint",
            &[&format!("{clippy} --all-targets --no-default-features -- -D warnings")],
        ),
        ("lint", &[&format!("{clippy} --test e2e -- -D warnings")]),
        ("test", &["$(call lanes,test,host roles waiting)"]),
        ("test-all", &["$(call lanes,test-all,host roles waiting machines rest)"]),
        ("ci", &["$(call lanes,test-all,lint host roles waiting machines rest)"]),
        ("host", &["cargo test --locked --lib $(call tests,$(HOST))"]),
        ("roles", &["--test roles"]),
        ("waiting", &["$(call tests,$(WAITING))"]),
        (
            "rest",
            &["debug/diskplugin demo", "debug/examples/wiremock", "tests/helm/run"],
        ),
        ("rest", &["tests/sdk/run", "tests/sanity/run", "tests/image/run"]),
        ("machines", &["--test cluster", "--test guest", "--test e2e"]),
    ] {
        for command in commands {
            assert!(recipe(target).contains(command), "make {target} does not run {command}");
        }
    }
    for variable in [
        "MACHINES := cluster guest e2e",
        "HOST := $(filter-out $(MACHINES) $(WAITING) roles,$(SUITES))",
    ] {
        assert!(makefile.contains(&format!("\n{variable}\n")), "{variable}");
    }
    let end = "\tscripts/no-secrets target/test.log || code=1; ((code == 0)) || scripts/failures target/test.log; exit $$code\n";
    assert!(makefile.contains(end));
    assert!(read(".ci/run").contains("make ci"));
}

fn needs_root(page: &Page) -> bool {
    session(page).iter().any(|step| step.typed == "diskplugin demo")
}

/// Whether its commands need a cluster: `tests/e2e` executes them.
fn needs_cluster(page: &Page) -> bool {
    let mut blocks = page.blocks.iter();
    blocks.any(|block| block.text.lines().any(|line| line == "make cluster"))
}

/// Whether the demo can run with devices.
async fn can_make_devices() -> bool {
    let probe = "test $(id -u) = 0 && f=$(mktemp) && truncate -s 1M $f && d=$(flock /dev losetup -f --show $f) \
         && losetup -d $d && rm $f";
    let command = Command::new("sh").args(["-ec", probe]);
    let deadline = Deadline::after(Duration::from_secs(60));
    let output = ProcessExec.run(&command, deadline).await.unwrap();
    let reason = format!("root and loop devices are needed: {}", output.stderr);
    output.code == Some(0) || skip("the demo in README.md", &reason)
}

/// Whether make has built grpcurl.
fn has_grpcurl(page: &Page) -> bool {
    let name = page.path.display().to_string();
    root().join(TOOLS).join("grpcurl").exists() || skip(&name, &format!("{TOOLS}/grpcurl is not built"))
}

/// Prints what is skipped, which fails in CI.
fn skip(name: &str, reason: &str) -> bool {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "nothing is skipped in CI: {reason}");
    eprintln!("SKIPPED: {name} because {reason}");
    false
}

#[test]
fn the_tutorial_installs_the_grpcurl_that_is_tested() {
    let module = read("tests/tools/go.mod");
    let version = module.split_once("github.com/fullstorydev/grpcurl v").unwrap().1;
    let version = version.split_whitespace().next().unwrap();
    let line = format!("go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v{version}\n");
    assert!(read("docs/tutorials/laptop.md").contains(&line), "{line}");
}

/// The steps of a page that failed or whose output is not the expected one.
async fn play(page: &Page, steps: &[Step]) -> Vec<String> {
    if steps.is_empty() {
        return Vec::new();
    }
    let dir = tempfile::tempdir().unwrap();
    let address = free_address();
    let with_address = |text: &String| text.replace(ADDRESS, &address);
    let steps = steps.iter().map(|step| Step {
        typed: with_address(&step.typed),
        shown: step.shown.iter().map(with_address).collect(),
    });
    let steps: Vec<_> = steps.collect();
    let file = dir.path().join("session.sh");
    let commands = script(steps.iter().map(|step| step.typed.as_str()));
    std::fs::write(&file, preamble(&address) + &commands).unwrap();
    // Ends a session that hangs, with all its processes.
    let command = Command::new("timeout")
        .args(["--kill-after=5", &TIMEOUT.as_secs().to_string(), "bash"])
        .arg(&file);
    let deadline = Deadline::after(TIMEOUT + Duration::from_secs(10));
    let output = ProcessExec.run(&command, deadline).await.unwrap();
    mismatches(page, &steps, &output.stdout)
}

fn preamble(address: &str) -> String {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_diskplugin"));
    let folder = program.parent().unwrap().display();
    let (tools, proto) = (root().join(TOOLS), root().join("proto"));
    let (tools, proto) = (tools.display(), proto.display());
    format!(
        "set -eu\nexec 2>&1\ncd \"$(dirname \"$0\")\"\n\
         unset RUST_LOG ${{!DISKPLUGIN_@}} ${{!ACCESS_KEY_@}} ${{!ALIBABA_CLOUD_@}}\n\
         export TMPDIR=$PWD PATH=\"{folder}:{tools}:$PATH\" PROTO={proto} DISKPLUGIN_LISTEN={address}\n\
         trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n"
    )
}

fn free_address() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn steps_that_fail_or_print_other_output_are_reported() {
    let made_up = |text: &str| Page::read("made-up.md".as_ref(), text);
    for (text, wrong) in [
        ("```sh\ntrue\n```\n```console\n$ echo $((1 + 1))\n2\n```\n", 0),
        ("```console\n$ echo 1\n2\n$ echo 2\n2\n```\n", 1),
        ("```sh\nfalse\n```\n```sh\ntrue\n```\n", 1),
        ("```console\n$ X=1\n$ echo $X $PWD\n1 [..]\n```\n", 0),
    ] {
        let page = made_up(text);
        assert_eq!(play(&page, &session(&page)).await.len(), wrong, "{text}");
    }
}

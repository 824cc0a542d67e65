//! `/status`, with and without a browser.

use std::net::SocketAddr;

use reqwest::Method;

use crate::common::csi::{create, publish};
use crate::common::fake::{KEY, NODES, SECRET};
use crate::common::process::Start;
use crate::common::recording_proxy::RecordingProxy;
use crate::common::shell::has;
use crate::common::wait::until;
use crate::http_client::{client, request};
use crate::running::{SOON, served};
use crate::text::{assert_has, assert_lacks};

/// An ID that would run a script, load an image and end an attribute.
const HOSTILE: &str = r#"d-"><script>document.title="executed"</script><img src="http://127.0.0.1:9/x" onerror=x>"#;

#[tokio::test]
async fn the_page_does_not_exist_by_default() {
    let (_fake, controller) = served(&[], &[]).await;
    let response = controller.get("/status").await;
    assert_eq!(response.status, 404, "{response:?}");
    assert_has(&response.text, &["--status-page"]);
}

#[tokio::test]
async fn the_page_shows_a_stuck_attach_and_a_failed_call() {
    let (_fake, controller) = served(&["--attach-delay=10m"], &["--status-page"]).await;
    let channel = &controller.channel;
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();
    let volume = create(channel, "pvc-1").await.unwrap();
    let attached = publish(channel, &volume, NODES[0]);
    let shown = until("the attach waits for the cloud", SOON, async || {
        let page = controller.get("/status").await;
        assert_eq!(page.status, 200, "{page:?}");
        page.text.contains("<td>poll</td>").then_some(page.text)
    });
    let page = tokio::select! {
        page = shown => page,
        ended = attached => panic!("the attach ended: {ended:?}"),
    };
    let encoded = volume.replace('-', "%2D");
    let link = format!("<a href=\"debug/volumes/{encoded}\">{volume}</a>");
    let parts = [
        &format!("<td>ControllerPublishVolume</td><td>{link}</td><td>{}</td>", NODES[0]),
        "<td>poll</td><td class=\"prose\">waiting for the cloud to finish an operation</td>",
        "<td>attach</td><td class=\"number\">1</td>",
        ">d-missing</a></td><td>NotFound</td>",
        "<td class=\"number\">1</td></tr>",
        "<td>AttachDisk</td>",
        "<td>credentials</td><td>ok</td>",
    ];
    assert_has(&page, &parts);
    assert_lacks(&page, &[KEY, SECRET]);
    // The link of the page.
    let history = controller.get(&format!("/debug/volumes/{encoded}")).await;
    assert_eq!(history.status, 200, "{history:?}");
    assert_has(&history.text, &["AttachDisk"]);
}

#[tokio::test]
async fn the_page_forbids_scripts_is_read_only_and_does_not_reload_if_it_is_paused() {
    let (_fake, controller) = served(&[], &["--status-page"]).await;
    for (path, reloads) in [("/status", true), ("/status?paused", false)] {
        let page = controller.get(path).await;
        assert_eq!(page.text.contains("http-equiv=\"refresh\""), reloads, "{page:?}");
    }
    let http = controller.http().await;
    let response = client().get(format!("{http}/status")).send().await.unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap();
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(request(Method::POST, &http, "/status").await.status, 405);
}

/// Whether Chromium is installed. Prints the reason if not; fails in CI.
async fn has_chromium(test: &str) -> bool {
    has(test, "command -v chromium", "chromium is missing").await
}

/// The document at the address, in a browser with these flags.
async fn document(url: &str, flags: &[&str]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let switches = "--headless --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run \
                    --disable-background-networking --disable-component-update --disable-sync --dump-dom";
    let browser = Start::of("chromium")
        .args(switches.split_whitespace())
        .args([format!("--user-data-dir={}", profile.path().display())])
        .args(flags)
        .args([url])
        .env("HOME", profile.path());
    let ended = browser.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

#[tokio::test]
async fn a_browser_shows_hostile_names_as_text_and_loads_nothing_else() {
    if !has_chromium("a_browser_shows_hostile_names_as_text_and_loads_nothing_else").await {
        return;
    }
    let (_fake, controller) = served(&[], &["--status-page"]).await;
    let http = controller.http().await;
    publish(&controller.channel, HOSTILE, NODES[0]).await.unwrap_err();
    let server: SocketAddr = http.trim_start_matches("http://").parse().unwrap();
    let proxy = RecordingProxy::to(server).await;
    let url = format!("{http}/status");
    let server = format!("--proxy-server={}", proxy.url);
    let dom = document(&url, &["--proxy-bypass-list=<-loopback>", &server]).await;

    assert_eq!(dom.matches("<h2>").count(), 7, "{dom}");
    let parts = [
        "<title>diskplugin controller</title>",
        "<h2>Recent failures</h2>",
        "d-\"&gt;&lt;script&gt;document.title=\"executed\"&lt;/script&gt;&lt;img",
        "href=\"debug/volumes/d%2D%22%3E%3Cscript",
    ];
    assert_has(&dom, &parts);
    // The browser contacts services of its vendor itself. The page names no other address.
    assert_lacks(
        &dom,
        &["<script", "<img", "<link", "<iframe", "<object", "url(", "@import"],
    );
    let sent = proxy.sent();
    let requested = targets(&sent);
    let (own, others): (Vec<&str>, Vec<&str>) = requested.into_iter().partition(|target| *target == url);
    assert!(!own.is_empty(), "{sent}");
    assert!(others.iter().all(|target| is_of_vendor(target)), "{others:?}");
}

/// The widths of a phone, a tablet and a notebook.
const WIDTHS: [u32; 3] = [360, 768, 1300];

#[tokio::test]
async fn the_page_is_never_wider_than_its_window() {
    if !has_chromium("the_page_is_never_wider_than_its_window").await {
        return;
    }
    let (_fake, controller) = served(&[], &["--status-page"]).await;
    for volume in ["d-2zeg6qo6xx0001a1b2c3d", &"long".repeat(100), HOSTILE] {
        publish(&controller.channel, volume, NODES[0]).await.unwrap_err();
    }
    let page = controller.get("/status?paused").await.text;
    // A window of Chromium is at least 500 pixels wide, but not a frame.
    let frames = WIDTHS.map(|width| {
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe width={width} height=800 srcdoc=\"{page}\"></iframe>")
    });
    let measure = "onload = () => document.title = Array.from(frames, frame => \
                   frame.document.documentElement.scrollWidth - frame.innerWidth)";
    let html = format!("<title></title>{}<script>{measure}</script>", frames.concat());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("frames.html");
    std::fs::write(&file, html).unwrap();
    let dom = document(&format!("file://{}", file.display()), &["--hide-scrollbars"]).await;
    assert!(dom.contains("<title>0,0,0</title>"), "{}", &dom[..200]);
}

/// The addresses of all requests. A request can follow the body of another one in its line.
fn targets(sent: &str) -> Vec<&str> {
    let requests = sent.lines().filter_map(|line| line.strip_suffix(" HTTP/1.1"));
    requests.filter_map(|request| request.rsplit(' ').next()).collect()
}

fn is_of_vendor(target: &str) -> bool {
    let address = target.strip_prefix("http://").unwrap_or(target);
    let host = address.split([':', '/']).next().unwrap_or_default();
    [".google.com", ".googleapis.com", ".gvt1.com"]
        .iter()
        .any(|domain| host.ends_with(domain))
}

//! Runs the scenarios: libtest has no setup and teardown of shared state.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::{Builder, Runtime};

use crate::cluster::Cluster;
use crate::program::built;
use crate::scene::Scene;

/// Number of parallel scenarios, which mostly wait.
const PARALLELISM: usize = 6;

/// A test on the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The namespace of the scenario.
    pub(crate) short: &'static str,
    pub(crate) run: Run,
}

pub(crate) type Run = for<'a> fn(&'a Scene<'a>) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// `short => module::test` for each: the test is an async function of its scene.
macro_rules! scenarios {
    ($($short:literal => $module:ident :: $test:ident,)*) => {
        vec![$($crate::suite::Scenario {
            name: concat!("on_a_cluster::", stringify!($module), "::", stringify!($test)),
            short: $short,
            run: |scene| Box::pin($crate::$module::$test(scene)),
        }),*]
    };
}
pub(crate) use scenarios;

/// The shared cluster, started by the first scenario.
struct Shared {
    runtime: Runtime,
    cluster: OnceLock<Cluster>,
}

/// Runs the steps one after the other; the scenarios of the first one run in parallel.
pub(crate) fn run(steps: Vec<Vec<Scenario>>) -> ExitCode {
    let args = Arguments::from_args();
    let all = || steps.iter().flatten();
    let any = all().any(|scenario| is_wanted(&args, scenario.name));
    if let Some(reason) = missing().filter(|_| any && !args.list) {
        return skip(&reason);
    }
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let shared = Arc::new(Shared {
        runtime: runtime.expect("a runtime can be built"),
        cluster: OnceLock::new(),
    });
    let mut failed = false;
    for (number, scenarios) in steps.into_iter().enumerate() {
        let wanted = scenarios.iter().any(|scenario| is_wanted(&args, scenario.name));
        if wanted && !args.list {
            // On the main thread: processes are killed when the thread that started them ends.
            shared.cluster();
        }
        let trials = scenarios.into_iter().map(|scenario| trial(&shared, scenario));
        let mut args = args.clone();
        let parallelism = if number == 0 { PARALLELISM } else { 1 };
        args.test_threads = args.test_threads.or(Some(parallelism));
        failed |= libtest_mimic::run(&args, trials.collect()).has_failed();
    }
    // Without process::exit, so that the cluster's directory is removed.
    drop(shared);
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Selects like libtest-mimic, to decide whether a cluster is required.
fn is_wanted(args: &Arguments, name: &str) -> bool {
    let matches = |part: &String| {
        if args.exact { name == part } else { name.contains(part) }
    };
    args.filter.as_ref().is_none_or(matches) && !args.skip.iter().any(matches)
}

fn trial(shared: &Arc<Shared>, scenario: Scenario) -> Trial {
    let shared = Arc::clone(shared);
    Trial::test(scenario.name, move || shared.run(scenario))
}

impl Shared {
    fn cluster(&self) -> &Cluster {
        self.cluster.get_or_init(|| self.runtime.block_on(Cluster::start()))
    }

    fn run(&self, scenario: Scenario) -> Result<(), Failed> {
        let cluster = self.cluster();
        let scene = self.runtime.block_on(Scene::open(cluster, scenario.short));
        let run = || self.runtime.block_on((scenario.run)(&scene));
        let Err(panic) = catch_unwind(AssertUnwindSafe(run)) else {
            return Ok(());
        };
        let words = scene.words.lock().unwrap().clone();
        let logs = self.runtime.block_on(cluster.logs(&words));
        Err(format!("{}\n{logs}", message(panic.as_ref())).into())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The runtime reaps the children.
        let _guard = self.runtime.enter();
        self.cluster.take();
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("panic without a message")
}

/// The missing program, if any.
fn missing() -> Option<String> {
    let helm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/helm/bin/helm");
    let wanted = [built("kube"), built("csi-provisioner"), built("crd"), helm];
    let missing = wanted.iter().find(|path| !path.exists())?;
    Some(format!(
        "{} is not built: scripts/setup cluster builds it, or prints the reason",
        missing.display()
    ))
}

fn skip(reason: &str) -> ExitCode {
    if std::env::var_os("CI").is_some_and(|ci| !ci.is_empty()) {
        println!("the cluster cannot run because {reason}, and CI must not skip");
        return ExitCode::FAILURE;
    }
    println!("SKIPPED: the cluster because {reason}");
    ExitCode::SUCCESS
}

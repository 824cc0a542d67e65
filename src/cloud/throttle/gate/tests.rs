use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;

use super::*;
use crate::base::TokioClock;

fn gate() -> Arc<Gate> {
    let clock = TokioClock::starting_at(Timestamp::from_second(1_800_000_000).unwrap());
    Arc::new(Gate::new(Arc::new(clock)))
}

fn soon(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

fn refused(action: &'static str, code: &str) -> Error {
    Error::answered(action, 400, code).with_request_id("R-1")
}

async fn go(gate: &Gate, action: &'static str, deadline: Deadline) -> Result<()> {
    let class = Class::of(action);
    gate.attempt(action, class, deadline, || async { Ok(()) })
        .await
}

async fn shut(gate: &Gate, action: &'static str, code: &str) {
    for _ in 0..12 {
        go(gate, action, soon(1)).await.unwrap();
    }
    let refuse = || async { Err::<(), _>(refused(action, code)) };
    let outcome = gate
        .attempt(action, Class::of(action), soon(1), refuse)
        .await;
    assert!(outcome.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_shut_api_fails_at_once_where_the_deadline_is_nearer_and_says_how_long_it_lasts() {
    let gate = gate();
    shut(&gate, "CreateDisk", "Throttling").await;
    let begun = tokio::time::Instant::now();
    let late = go(&gate, "CreateDisk", soon(20)).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(late.kind(), Kind::Throttled);
    let text = late.to_string();
    for part in ["Throttling", "R-1", "60.5 s", "not sent"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(go(&gate, "CreateDisk", soon(61)).await.is_ok());
    assert!(begun.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn one_api_is_shut_alone_and_a_throttled_account_shuts_all() {
    let gate = gate();
    shut(&gate, "CreateDisk", "Throttling").await;
    assert!(go(&gate, "DeleteDisk", soon(1)).await.is_ok());
    shut(&gate, "DescribeDisks", "Throttling.User").await;
    for action in ["DeleteDisk", "AttachDisk", "DetachDisk"] {
        let late = go(&gate, action, soon(10)).await.unwrap_err();
        assert_eq!(late.kind(), Kind::Throttled, "{action}");
        assert!(late.to_string().contains("the account"), "{late}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_a_window_is_over_one_call_goes_first_and_the_others_follow_its_answer() {
    let gate = gate();
    shut(&gate, "CreateDisk", "Throttling").await;
    let out = Arc::new(AtomicU32::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (gate, out) = (Arc::clone(&gate), Arc::clone(&out));
        calls.spawn(async move {
            let attempt = || async {
                let others = out.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(others)
            };
            let class = Class::Change;
            gate.attempt("CreateDisk", class, soon(120), attempt).await
        });
    }
    tokio::time::sleep(Duration::from_millis(61_000)).await;
    assert_eq!(out.load(Ordering::SeqCst), 1);
    assert!(
        calls
            .join_all()
            .await
            .into_iter()
            .all(|outcome| outcome.is_ok())
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_first_call_of_a_window_holds_the_others_back() {
    let gate = gate();
    shut(&gate, "CreateDisk", "Throttling").await;
    let sent = Arc::new(AtomicU32::new(0));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (gate, sent) = (Arc::clone(&gate), Arc::clone(&sent));
        calls.spawn(async move {
            let attempt = || async {
                sent.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(300)).await;
                let wait = Some(Duration::from_secs(59));
                Err::<(), _>(refused("CreateDisk", "Throttling").with_wait(wait))
            };
            let class = Class::Change;
            gate.attempt("CreateDisk", class, soon(115), attempt).await
        });
    }
    calls.join_all().await;
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn detaching_goes_before_attaching_and_both_before_the_rest_when_the_account_opens() {
    let gate = gate();
    shut(&gate, "DescribeDisks", "Throttling.User").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = tokio::task::JoinSet::new();
    for action in ["CreateDisk", "DescribeRegions", "AttachDisk", "DetachDisk"] {
        let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
        calls.spawn(async move {
            let attempt = || async {
                order.lock().unwrap().push(action);
                Ok(())
            };
            let class = Class::of(action);
            gate.attempt(action, class, soon(200), attempt).await
        });
        tokio::task::yield_now().await;
    }
    assert!(
        calls
            .join_all()
            .await
            .into_iter()
            .all(|outcome| outcome.is_ok())
    );
    assert_eq!(
        *order.lock().unwrap(),
        ["DetachDisk", "AttachDisk", "CreateDisk", "DescribeRegions"]
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_while_it_waits_makes_no_call_and_holds_nobody_up() {
    let gate = gate();
    shut(&gate, "CreateDisk", "Throttling").await;
    let never = || async { panic!("called") };
    let waiting = gate.attempt::<(), _>("CreateDisk", Class::Change, soon(600), never);
    assert!(soon(5).bound(waiting).await.is_err());
    assert!(go(&gate, "CreateDisk", soon(70)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hangs_holds_others_up_for_two_seconds_at_most() {
    let gate = gate();
    shut(&gate, "CreateDisk", "Throttling").await;
    let hanging = Arc::clone(&gate);
    let hung = async move {
        let hang = std::future::pending::<Result<()>>;
        hanging
            .attempt("CreateDisk", Class::Change, soon(600), hang)
            .await
    };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(hung);
    tokio::task::yield_now().await;
    let begun = tokio::time::Instant::now();
    assert!(go(&gate, "CreateDisk", soon(100)).await.is_ok());
    assert!(
        begun.elapsed() <= Duration::from_secs(63),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn calls_that_never_reached_the_cloud_prove_nothing() {
    let unreached = || Error::new(Kind::Unreachable, "CreateDisk");
    let reset = || Error::new(Kind::Ambiguous, "CreateDisk");
    let concurrent = || refused("CreateDisk", CONCURRENT);
    for (error, sent) in [
        (&unreached as &(dyn Fn() -> Error + Sync), 0),
        (&reset, 10),
        (&concurrent, 10),
    ] {
        let gate = gate();
        for _ in 0..10 {
            let fail = || async { Err::<(), _>(error()) };
            let outcome = gate.attempt("CreateDisk", Class::Change, soon(1), fail);
            assert!(outcome.await.is_err());
        }
        let mut state = gate.lock();
        assert_eq!(state.api("CreateDisk").lane.tally(), (sent, 0));
        assert_eq!(state.account.tally(), (sent, 0));
        assert_eq!(state.api("CreateDisk").lane.budget(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn urgent_calls_of_many_apis_do_not_starve_the_others_when_the_account_is_short() {
    let gate = gate();
    shut(&gate, "DescribeDisks", "Throttling.User").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = tokio::task::JoinSet::new();
    let urgent = ["AttachDisk", "DetachDisk"];
    let urgent = urgent.into_iter().cycle().take(40);
    for action in urgent.chain(["CreateDisk"]) {
        let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
        calls.spawn(async move {
            let attempt = || async {
                order.lock().unwrap().push(action);
                Ok(())
            };
            gate.attempt(action, Class::of(action), soon(3600), attempt)
                .await
        });
        tokio::task::yield_now().await;
    }
    for outcome in calls.join_all().await {
        outcome.unwrap();
    }
    let order = order.lock().unwrap();
    let turn = order.iter().position(|action| *action == "CreateDisk");
    assert!(turn.unwrap() < 12, "{order:?}");
}

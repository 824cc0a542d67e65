use std::sync::atomic::{AtomicUsize, Ordering};

use ecs::{Error, Kind};

use super::*;

/// Lists this number of names in pages of 500 rows; the calls with the indexes in `fails` fail.
fn listing(names: usize, fails: &'static [usize]) -> (OwnershipListing, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let page = move |tags: Tags, next: Option<String>| -> BoxFuture<Result<Page>> {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if fails.contains(&call) {
                return Err(Error::new(Kind::Ambiguous, "DescribeDisks"));
            }
            let from: usize = next.map_or(0, |next| next.parse().unwrap());
            let until = (from + 500).min(names);
            // The cloud truncates a list filtered by tags.
            let ends = until == names || !tags.is_empty() && until >= MAX_FILTERED_ROWS;
            // One resource has the tag of the cluster and no name.
            let named = |n| (n != 7).then(|| (format!("pvc-{n}"), format!("d-{n}")));
            let rows = (from..until).map(|n| Row {
                named: named(n),
                is_canary: true,
            });
            let next = (!ends).then(|| until.to_string());
            Ok(Page::new(rows.collect(), next))
        })
    };
    let tags = Tags::from([("cluster".to_owned(), "test".to_owned())]);
    let listing = OwnershipListing::new(
        Tasks::default(),
        tags,
        Box::new(page),
        Box::new(|| 0),
        (None, Arc::default()),
    );
    (listing, calls)
}

async fn find(listing: &OwnershipListing, name: &str) -> Listed {
    let deadline = Deadline::after(Duration::from_secs(60));
    listing.find(deadline, name).await
}

#[tokio::test(start_paused = true)]
async fn concurrent_creates_share_one_listing() {
    let (listing, calls) = listing(700, &[]);
    let (last, none, first) = tokio::join!(
        find(&listing, "pvc-699"),
        find(&listing, "pvc-700"),
        find(&listing, "pvc-0"),
    );
    assert_eq!(last, Listed::Found("d-699".to_owned()));
    assert_eq!(none, Listed::Absent);
    assert_eq!(first, Listed::Found("d-0".to_owned()));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn truncated_list_is_repeated_without_a_filter() {
    let (listing, calls) = listing(1700, &[]);
    assert_eq!(find(&listing, "pvc-1699").await, Listed::Unknown);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(find(&listing, "pvc-1699").await, Listed::Found("d-1699".to_owned()));
    assert_eq!(calls.load(Ordering::SeqCst), 6);
}

#[tokio::test(start_paused = true)]
async fn old_listing_is_refreshed_and_failed_refresh_is_retried() {
    let (listing, calls) = listing(1, &[1, 2]);
    assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
    tokio::time::advance(REFRESH_AGE).await;
    // The old listing is still valid, and its refresh fails.
    assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
    tokio::time::sleep(MAX_AGE - REFRESH_AGE).await;
    assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
    assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    tokio::time::advance(RETRY_DELAY).await;
    assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
}

#[tokio::test(start_paused = true)]
async fn only_a_later_listing_with_a_canary_proves_that_a_name_is_free() {
    for (names, is_unresolved, proves) in [
        (1, true, true),
        (1, false, true),
        (0, true, false),
        // A new cluster in a new account has no canary.
        (0, false, true),
    ] {
        let (listing, _) = listing(names, &[]);
        assert_eq!(find(&listing, "pvc-9").await, Listed::Absent);
        let since = Instant::now();
        let deadline = Deadline::after(Duration::from_secs(600));
        let excludes = async |name| {
            let is_gone = |_: &str| false;
            listing.excludes(deadline, name, since, is_unresolved, is_gone).await
        };
        assert!(!excludes("pvc-9").await);
        tokio::time::advance(EFFECT_DELAY).await;
        assert_eq!(excludes("pvc-9").await, proves);
        assert!(names == 0 || !excludes("pvc-0").await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_listing_with_a_resource_that_is_gone_by_now_is_followed_by_another_one() {
    for listed in [&["d-1"][..], &["d-1", "d-2"]] {
        let calls = Arc::new(AtomicUsize::new(0));
        let page = move |_, _| -> BoxFuture<Result<Page>> {
            let row = |name: &str, id: &str| Row {
                named: Some((name.to_owned(), id.to_owned())),
                is_canary: true,
            };
            let mut rows = vec![row("pvc-0", "d-0")];
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                rows.extend(listed.iter().map(|id| row("pvc-1", id)));
            }
            Box::pin(async { Ok(Page::new(rows, None)) })
        };
        let (tasks, tags) = (Tasks::default(), Tags::new());
        let listing = OwnershipListing::new(tasks, tags, Box::new(page), Box::new(|| 0), (None, Arc::default()));
        let deadline = Deadline::after(Duration::from_secs(600));
        let since = Instant::now();
        tokio::time::advance(EFFECT_DELAY).await;
        find(&listing, "pvc-0").await;
        let excludes = async |is_gone| {
            let is_gone = move |_: &str| is_gone;
            listing.excludes(deadline, "pvc-1", since, true, is_gone).await
        };
        // Which of several resources are gone is not known: the next listing decides in any case.
        let is_single = listed.len() == 1;
        assert!(!is_single || !excludes(false).await);
        tokio::time::advance(RETRY_DELAY).await;
        assert!(excludes(is_single).await, "{listed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_row_does_not_hide_other_names() {
    let page = |_, _| -> BoxFuture<Result<Page>> {
        let row = Row {
            named: Some(("pvc-0".to_owned(), "d-0".to_owned())),
            is_canary: true,
        };
        let mut page = Page::new(vec![row], None);
        let (id, reason) = (None, "no size".to_owned());
        page.unreadable.push(ecs::Unreadable { id, reason });
        Box::pin(async { Ok(page) })
    };
    let listing = OwnershipListing::new(
        Tasks::default(),
        Tags::new(),
        Box::new(page),
        Box::new(|| 0),
        (None, Arc::default()),
    );
    assert_eq!(find(&listing, "pvc-0").await, Listed::Found("d-0".to_owned()));
    // The unreadable row may have the name, so its tags must be queried.
    assert_eq!(find(&listing, "pvc-9").await, Listed::Unknown);
    let since = Instant::now();
    tokio::time::advance(EFFECT_DELAY).await;
    let deadline = Deadline::after(Duration::from_secs(600));
    let excludes = listing.excludes(deadline, "pvc-9", since, true, |_| false);
    assert!(excludes.await);
}

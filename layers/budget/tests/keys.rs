//! Keys are bounded, and none gains by being dropped.

mod support;

use std::{num::NonZeroUsize, time::Duration};

use steadfast_budget::{Admit, Keyed, Patience, Place, Verdict};
use support::{Request, limit, ms};
use tokio::time::{self, Instant};

type BySession = Keyed<u64, fn(&Request) -> u64>;

#[tokio::test(start_paused = true)]
async fn further_keys_share_one_bucket_when_it_is_full_of_keys() {
    let limits = by_session("1/s burst 2", 3);
    for session in 0..3 {
        assert!(admits(&limits, session));
    }

    // Two calls for all the others together.
    assert!(admits(&limits, 10));
    assert!(admits(&limits, 11));
    let over = refuse(&limits, 12);

    assert!(over.is_overflow());
    assert_eq!(over.retry_in(), ms(1_000));
    assert_eq!(limits.keys(), 3);
    // Those that have a bucket keep it.
    assert!(admits(&limits, 0));
    assert!(!refuse(&limits, 0).is_overflow());
}

#[tokio::test(start_paused = true)]
async fn a_key_is_dropped_for_a_new_one_once_its_bucket_is_full_and_not_before() {
    let limits = by_session("1/s burst 2", 1);
    assert!(admits(&limits, 1));
    assert!(admits(&limits, 1));

    time::advance(ms(2_000) - Duration::from_nanos(1)).await;
    assert!(admits(&limits, 2), "by the bucket that is shared");
    assert!(admits(&limits, 3), "by the bucket that is shared");
    assert!(refuse(&limits, 4).is_overflow());

    time::advance(Duration::from_nanos(1)).await;
    assert!(admits(&limits, 5));
    assert!(admits(&limits, 5));
    assert!(!refuse(&limits, 5).is_overflow(), "it has its own");
    assert_eq!(limits.keys(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_key_resets_its_bucket_by_being_dropped() {
    // A flood of other keys, with room for few, cannot push the busy one out.
    let limits = by_session("1/s burst 10", 8);
    let begin = Instant::now();
    let mut admitted = 0;

    for flood in 0..20_000 {
        let _ = admits(&limits, 1_000 + flood);
        admitted += u32::from(admits(&limits, 1));
        time::advance(ms(1)).await;
    }

    assert_eq!(begin.elapsed(), ms(20_000));
    // 10 at once, and one per second until just before the end.
    assert_eq!(admitted, 10 + 19);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_somebody_waits_for_is_not_dropped() {
    let limits = by_session("1/s", 1);
    assert!(admits(&limits, 1));
    let mut place = Place::default();
    let patience = Patience::new(Some(Instant::now() + ms(60_000)));
    let verdict = limits.admit(&Request::of(1), &mut place, patience);
    assert!(matches!(verdict, Verdict::Wait(_)));

    // Its bucket would be full again by now, but the waiter has not come back for it.
    time::advance(ms(10_000)).await;
    assert!(admits(&limits, 2), "by the bucket that is shared");
    assert!(refuse(&limits, 3).is_overflow());

    drop(place);
    time::advance(ms(1_000)).await;
    assert!(admits(&limits, 2));
    assert!(!refuse(&limits, 2).is_overflow(), "it has its own now");
}

#[tokio::test(start_paused = true)]
async fn clones_share_their_keys() {
    let limits = by_session("1/s", 8);
    let clone = limits.clone();

    assert!(admits(&limits, 1));

    refuse(&clone, 1);
    assert_eq!(clone.keys(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_hash_panics_leaves_the_others_usable() {
    #[derive(Clone, PartialEq, Eq)]
    struct Key(u64);
    impl std::hash::Hash for Key {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            assert_ne!(self.0, 13, "the key panics");
            self.0.hash(state);
        }
    }
    let limits = Keyed::new(limit("session", "1/s"), |request: &Request| {
        Key(request.session)
    });

    let unlucky = std::panic::AssertUnwindSafe(|| admit(&limits, 13));
    assert!(std::panic::catch_unwind(unlucky).is_err());

    assert!(matches!(admit(&limits, 1), Verdict::Admitted));
    assert!(matches!(admit(&limits, 1), Verdict::Over(_)));
    // It is not among those that a later one looks at.
    time::advance(Duration::from_secs(3_600)).await;
    assert!(matches!(admit(&limits, 2), Verdict::Admitted));
    assert_eq!(limits.keys(), 1);
}

/// A limit per session with room for so many.
fn by_session(quota: &str, max_keys: usize) -> BySession {
    let keyed: BySession = Keyed::new(limit("session", quota), |request: &Request| request.session);
    keyed.with_max_keys(NonZeroUsize::new(max_keys).expect("not zero"))
}

fn admit<A: Admit<Request>>(limits: &A, session: u64) -> Verdict {
    let mut ticket = A::Ticket::default();
    limits.admit(&Request::of(session), &mut ticket, Patience::new(None))
}

fn admits(limits: &BySession, session: u64) -> bool {
    matches!(admit(limits, session), Verdict::Admitted)
}

fn refuse(limits: &BySession, session: u64) -> steadfast_budget::OverBudget {
    match admit(limits, session) {
        Verdict::Over(over) => over,
        verdict => panic!("{verdict:?}"),
    }
}

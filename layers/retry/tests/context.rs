//! What a retry layer writes into the requests it sends.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use steadfast_classify::{Call, CallContext, Class, Effect, Failure, Flight, IdempotencyKey};
use tower::{Layer, ServiceExt};

mod support;
use support::{Request, Run, even, failed, layer, run, run_on, server};

fn keys(run: &Run) -> HashSet<IdempotencyKey> {
    let key = |seen: &support::Seen| seen.request.context.idempotency_key();
    run.seen
        .iter()
        .map(|seen| key(seen).expect("has a key"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn attempts_are_numbered_from_one() {
    let script = vec![failed(Class::NotSent); 4];

    let run = run(&layer(even()), Request::write(), script).await;

    let numbers: Vec<_> = run
        .seen
        .iter()
        .map(|seen| seen.request.context.attempt())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn d09_one_key_per_logical_call_layers() {
    let (server, mut handle) = server();
    let mut service = layer(even()).layer(server);
    let mut script = vec![failed(Class::Unknown); 3];
    script.push(Ok("done"));
    let (one, two) = (script.clone(), script.clone());

    let first = run_on(&mut service, &mut handle, Request::read(), one).await;
    // A clone of a service that has given keys must not give the same ones.
    let clone = service.clone();
    let second = run_on(service, &mut handle, Request::read(), two).await;
    let third = run_on(clone, &mut handle, Request::read(), script).await;

    let mut all = HashSet::new();
    for run in [&first, &second, &third] {
        assert_eq!(run.attempts(), 4);
        assert_eq!(keys(run).len(), 1, "the same on each attempt");
        all.extend(keys(run));
    }
    assert_eq!(all.len(), 3, "another for each call");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_layer_gave_makes_no_call_repeatable() {
    /// Its server knows keys, if the caller gives one.
    #[derive(Clone, Debug, Default)]
    struct Keyed(CallContext);

    impl Call for Keyed {
        fn effect(&self) -> Effect {
            match self.0.idempotency_key() {
                Some(_) => Effect::Idempotent,
                None => Effect::NonIdempotent,
            }
        }

        fn context_mut(&mut self) -> Option<&mut CallContext> {
            Some(&mut self.0)
        }
    }

    let mut with_key = Keyed::default();
    with_key.0.set_idempotency_key(IdempotencyKey::from_u128(7));
    for (request, attempts) in [(Keyed::default(), 1), (with_key, 4)] {
        let (mock, mut handle) = tower_test::mock::pair::<Keyed, ()>();
        let service = layer(even()).layer(mock);
        let server = async {
            let mut count = 0;
            while let Some((_, reply)) = handle.next_request().await {
                reply.send_error(Failure::new(Class::Unknown));
                count += 1;
            }
            count
        };

        let (result, count) = tokio::join!(service.oneshot(request), server);

        assert!(result.is_err());
        assert_eq!(count, attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_key_is_kept() {
    let key = IdempotencyKey::from_u128(7);
    let mut request = Request::write();
    request.context.set_idempotency_key(key);

    let run = run(&layer(even()), request, vec![failed(Class::NotSent); 4]).await;

    assert_eq!(keys(&run), HashSet::from([key]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_repeated_has_a_key_too() {
    let run = run(
        &layer(even().with_max_retries(0)),
        Request::write(),
        [Ok("done")],
    )
    .await;

    assert_eq!(keys(&run).len(), 1);
    assert_eq!(run.seen[0].request.context.attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_attempt_of_a_call_that_may_be_repeated_carries_a_flight_from_outside() {
    let mut request = Request::write();
    request.context.set_flight(Flight::new());

    let run = run(&layer(even()), request, vec![failed(Class::NotSent); 4]).await;

    for seen in &run.seen {
        let context = &seen.request.context;
        assert!(context.flight().is_none(), "attempt {}", context.attempt());
    }
}

#[tokio::test(start_paused = true)]
async fn the_only_attempt_of_a_call_keeps_its_flight() {
    let mut request = Request::write();
    request.context.set_flight(Flight::new());

    let run = run(
        &layer(even().with_max_retries(0)),
        request,
        [failed(Class::NotSent)],
    )
    .await;

    assert!(run.seen[0].request.context.flight().is_some());
}

#[tokio::test(start_paused = true)]
async fn each_attempt_carries_what_the_caller_wrote() {
    let mut request = Request::write().due_in(support::secs(60));
    request.context.set_tracked(true);
    let deadline = request.context.deadline();

    let run = run(&layer(even()), request, vec![failed(Class::NotSent); 4]).await;

    for seen in &run.seen {
        assert_eq!(seen.request.context.deadline(), deadline);
        assert!(seen.request.context.is_tracked());
    }
}

/// Counts how often it is cloned.
#[derive(Debug)]
struct Counted {
    clones: Arc<AtomicU32>,
    context: CallContext,
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::Relaxed);
        Self {
            clones: Arc::clone(&self.clones),
            context: self.context.clone(),
        }
    }
}

impl Call for Counted {
    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }

    fn context_mut(&mut self) -> Option<&mut CallContext> {
        Some(&mut self.context)
    }
}

/// How often a request is cloned by a call that ends after so many failures.
async fn clones(max_retries: u32, failures: u32) -> u32 {
    let (mock, mut handle) = tower_test::mock::pair::<Counted, ()>();
    let service = layer(even().with_max_retries(max_retries)).layer(mock);
    let clones = Arc::new(AtomicU32::new(0));
    let request = Counted {
        clones: Arc::clone(&clones),
        context: CallContext::new(),
    };
    let server = async {
        let mut left = failures;
        while let Some((_, reply)) = handle.next_request().await {
            if left == 0 {
                reply.send_response(());
            } else {
                left -= 1;
                reply.send_error(Failure::new(Class::NotSent));
            }
        }
    };
    let (_, ()) = tokio::join!(service.oneshot(request), server);
    clones.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn trap_tr_a_request_is_cloned_for_an_attempt_that_another_may_follow_and_no_other() {
    // The last attempt takes what was kept.
    for (max_retries, failures, want) in [
        (0, 0, 0),
        (0, 1, 0),
        (3, 0, 1),
        (3, 1, 2),
        (3, 2, 3),
        (3, 3, 3),
        (1, 2, 1),
    ] {
        let got = clones(max_retries, failures).await;
        assert_eq!(got, want, "max_retries {max_retries}, failures {failures}");
    }
}

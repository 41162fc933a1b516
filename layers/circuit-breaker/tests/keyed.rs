//! A circuit for each key: found, shared, bounded, evicted.

use std::time::Duration;

use steadfast_circuit_breaker::{
    CircuitBreaker, CircuitBreakerLayer, CircuitOpen, Keyed, Settings, State,
};
use steadfast_classify::{Class, Failure};
use tokio::{sync::oneshot, time::advance};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt, service_fn};

/// For which key, and what becomes of it.
type Request = (u32, Result<(), Class>);
type Key = fn(&Request) -> u32;
type Select = Keyed<u32, Key>;

const FIVE: Duration = Duration::from_secs(5);

fn layer(max_keys: usize) -> CircuitBreakerLayer<Select> {
    let settings = Settings::new()
        .with_consecutive_failures(1)
        .with_max_keys(max_keys);
    let key: Key = |request| request.0;
    CircuitBreakerLayer::keyed("tools", settings, key).expect("settings are valid")
}

fn service(
    layer: &CircuitBreakerLayer<Select>,
) -> CircuitBreaker<
    impl Service<Request, Response = (), Error = Failure, Future: Send> + Clone,
    Select,
> {
    layer.layer(service_fn(|(_, result): Request| async move {
        result.map_err(Failure::new)
    }))
}

async fn succeed(layer: &CircuitBreakerLayer<Select>, key: u32) {
    let result = service(layer).oneshot((key, Ok(()))).await;
    assert!(result.is_ok(), "{key}: {result:?}");
}

/// One failure opens the circuit.
async fn fail(layer: &CircuitBreakerLayer<Select>, key: u32) {
    let result = service(layer).oneshot((key, Err(Class::Unknown))).await;
    assert_eq!(
        result.expect_err("it fails").class(),
        Class::Unknown,
        "{key}"
    );
}

async fn rejected(layer: &CircuitBreakerLayer<Select>, key: u32) -> Failure {
    let result = service(layer).oneshot((key, Ok(()))).await;
    let failure = result.expect_err("it is turned away");
    assert_eq!(failure.class(), Class::Rejected, "{key}");
    failure
}

/// The keys that have a circuit, of these.
fn kept(layer: &CircuitBreakerLayer<Select>, keys: &[u32]) -> Vec<u32> {
    let has = |key: &u32| layer.snapshot(key).is_some();
    keys.iter().copied().filter(has).collect()
}

#[tokio::test(start_paused = true)]
async fn each_key_has_a_circuit_of_its_own() {
    let layer = layer(10);

    fail(&layer, 1).await;

    rejected(&layer, 1).await;
    succeed(&layer, 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_rejection_says_which_key() {
    let layer = CircuitBreakerLayer::keyed(
        "tools",
        Settings::new().with_consecutive_failures(1),
        |call: &(&'static str, &'static str)| *call,
    );
    let service = layer.unwrap().layer(service_fn(|_: (&str, &str)| async {
        Err::<(), _>(Failure::new(Class::NotSent))
    }));

    service.clone().oneshot(("a__b", "c")).await.unwrap_err();
    let failure = service.oneshot(("a__b", "c")).await.unwrap_err();

    let open: &CircuitOpen = failure.find_source().unwrap();
    // Not joined into one name, since ("a", "b__c") is another pair.
    assert_eq!(
        (open.name(), open.key()),
        ("tools", Some("(\"a__b\", \"c\")"))
    );
    let text = open.to_string();
    assert!(text.contains("\"tools\" for (\"a__b\", \"c\")"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn one_service_uses_the_circuits_of_all_its_keys() {
    let layer = layer(10);
    let mut service = service(&layer);

    for (key, want) in [
        (1, Class::Unknown),
        (2, Class::Unknown),
        (1, Class::Rejected),
    ] {
        let request = (key, Err(Class::Unknown));
        let failure = service.ready().await.unwrap().call(request).await;
        assert_eq!(failure.unwrap_err().class(), want, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_is_the_circuit_its_calls_go_by() {
    let layer = layer(10);
    succeed(&layer, 1).await;

    let breaker = layer.breaker(&1).unwrap();
    assert_eq!((breaker.name(), breaker.key()), ("tools", Some("1")));
    breaker.isolate();
    rejected(&layer, 1).await;

    // It may be made before any call.
    layer.breaker(&2).unwrap().isolate();
    rejected(&layer, 2).await;
}

#[tokio::test(start_paused = true)]
async fn looking_makes_no_circuit() {
    let layer = layer(10);
    assert!(layer.snapshot(&1).is_none());
    assert!(layer.snapshots().is_empty());

    succeed(&layer, 1).await;
    fail(&layer, 2).await;

    assert_eq!(layer.snapshot(&2).unwrap().state, State::Open);
    assert_eq!(layer.snapshots().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn so_many_keys_are_kept_and_no_more() {
    let layer = layer(100);

    for key in 0..10_000 {
        succeed(&layer, key).await;
        tokio::task::yield_now().await;
    }

    assert_eq!(layer.snapshots().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn the_closed_one_that_was_not_used_for_long_goes_first() {
    let layer = layer(3);
    for key in [1, 2, 3] {
        succeed(&layer, key).await;
    }

    // A round of the hand: all were used, and so the first one it comes to goes.
    succeed(&layer, 4).await;
    assert_eq!(kept(&layer, &[1, 2, 3, 4]), [2, 3, 4]);

    succeed(&layer, 2).await;
    succeed(&layer, 5).await;
    assert_eq!(kept(&layer, &[2, 3, 4, 5]), [2, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_remembered_circuit_counts_as_used() {
    let layer = layer(3);
    for key in [1, 2, 3, 4] {
        succeed(&layer, key).await;
    }
    let mut watch = layer.breaker(&2).unwrap().watch();
    let mut remembers = service(&layer);

    for key in [5, 6, 7, 8] {
        let response = remembers.ready().await.unwrap().call((2, Ok(())));
        response.await.unwrap();
        succeed(&layer, key).await;
    }
    let response = remembers.ready().await.unwrap().call((2, Ok(())));
    response.await.unwrap();

    // It is still the one it was: that would be gone by now.
    assert_pending!(task::spawn(watch.changed()).poll());
}

#[tokio::test(start_paused = true)]
async fn one_that_turns_calls_away_never_goes() {
    let layer = layer(3);
    fail(&layer, 1).await;
    layer.breaker(&2).unwrap().isolate();

    for key in 10..100 {
        succeed(&layer, key).await;
    }

    rejected(&layer, 1).await;
    rejected(&layer, 2).await;
    assert_eq!(layer.snapshots().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn one_of_which_there_is_a_handle_stays_and_may_go_after_it() {
    let layer = layer(2);
    let breaker = layer.breaker(&1).unwrap();
    breaker.observe_only(true);
    let clone = breaker.clone();
    drop(breaker);

    for key in 10..20 {
        succeed(&layer, key).await;
    }
    assert!(layer.snapshot(&1).unwrap().observe_only);

    drop(clone);
    for key in 20..23 {
        succeed(&layer, key).await;
    }
    assert!(layer.snapshot(&1).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_remembers_an_evicted_circuit_looks_again() {
    let layer = layer(1);
    let mut remembers = service(&layer);
    remembers
        .ready()
        .await
        .unwrap()
        .call((1, Ok(())))
        .await
        .unwrap();
    succeed(&layer, 2).await;
    assert_eq!(kept(&layer, &[1, 2]), [2]);

    let failed = remembers
        .ready()
        .await
        .unwrap()
        .call((1, Err(Class::Unknown)));
    failed.await.unwrap_err();

    // It was counted where others see it.
    rejected(&layer, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_of_an_evicted_circuit_ends_without_a_trace() {
    let layer = layer(1);
    let (end, ended) = oneshot::channel::<()>();
    let ended = std::sync::Mutex::new(Some(ended));
    let mut slow = layer.layer(service_fn(move |_: Request| {
        let ended = ended.lock().unwrap().take().unwrap();
        async move {
            ended.await.unwrap();
            Err::<(), _>(Failure::new(Class::Unknown))
        }
    }));
    let running = slow.ready().await.unwrap().call((1, Ok(())));
    succeed(&layer, 2).await;
    succeed(&layer, 1).await;

    end.send(()).unwrap();
    running.await.unwrap_err();

    succeed(&layer, 1).await;
}

#[tokio::test(start_paused = true)]
async fn when_all_are_open_new_keys_share_one_until_there_is_room() {
    let layer = layer(2);
    fail(&layer, 1).await;
    fail(&layer, 2).await;

    // Neither may go: 3 and 4 share a circuit, and what one does the other feels.
    let mut knows = service(&layer);
    let response = knows.ready().await.unwrap().call((3, Ok(())));
    response.await.unwrap();
    assert!(layer.breaker(&4).is_none());
    fail(&layer, 4).await;
    let failure = rejected(&layer, 3).await;
    let open: &CircuitOpen = failure.find_source().unwrap();
    assert_eq!((open.name(), open.key()), ("tools", Some("(any other)")));
    assert_eq!(layer.snapshots().len(), 3);

    // Room again: 3 has a circuit of its own, for those too who knew the other.
    layer.breaker(&1).unwrap().reset();
    advance(Duration::from_secs(1)).await;
    let response = knows.ready().await.unwrap().call((3, Ok(())));
    response.await.unwrap();
    assert_eq!(kept(&layer, &[1, 2, 3]), [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_full_table_is_not_searched_again_for_a_second() {
    let layer = layer(1);
    fail(&layer, 1).await;
    succeed(&layer, 2).await;
    layer.breaker(&1).unwrap().reset();

    advance(Duration::from_millis(999)).await;
    succeed(&layer, 2).await;
    assert_eq!(kept(&layer, &[1, 2]), [1]);

    advance(Duration::from_millis(1)).await;
    succeed(&layer, 2).await;
    assert_eq!(kept(&layer, &[1, 2]), [2]);
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_a_probe_goes_if_none_is_closed() {
    let layer = layer(2);
    fail(&layer, 1).await;
    advance(FIVE).await;
    fail(&layer, 2).await;
    // The open time of 1 is over, that of 2 is not.
    advance(FIVE * 5).await;

    succeed(&layer, 3).await;
    assert_eq!(kept(&layer, &[1, 2, 3]), [2, 3]);

    // A closed one goes before one that waits.
    advance(FIVE * 5).await;
    succeed(&layer, 4).await;
    assert_eq!(kept(&layer, &[2, 3, 4]), [2, 4]);
}

#[tokio::test(start_paused = true)]
async fn one_whose_probe_is_out_stays() {
    let layer = layer(1);
    fail(&layer, 1).await;
    advance(FIVE * 6).await;
    let mut hangs = layer.layer(service_fn(|_: Request| {
        std::future::pending::<Result<(), Failure>>()
    }));
    let probe = hangs.ready().await.unwrap().call((1, Ok(())));

    succeed(&layer, 2).await;
    assert_eq!(kept(&layer, &[1, 2]), [1]);

    drop(probe);
    advance(FIVE).await;
    succeed(&layer, 2).await;
    assert_eq!(kept(&layer, &[1, 2]), [2]);
}

#[test]
fn many_threads_find_the_same_circuits() {
    let layer = layer(8);
    let many_calls = |seed: u32| {
        let calls = async {
            for n in 0..2_000 {
                succeed(&layer, (n * 7 + seed * 3) % 23).await;
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(calls);
    };

    std::thread::scope(|scope| {
        for seed in 0..4 {
            let many_calls = &many_calls;
            scope.spawn(move || many_calls(seed));
        }
    });

    let snapshots = layer.snapshots();
    assert_eq!(snapshots.len(), 8);
    assert!(snapshots.iter().all(|it| it.state == State::Closed));
}

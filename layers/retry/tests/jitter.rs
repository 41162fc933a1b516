//! That callers who failed together do not come back together.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{collections::HashSet, sync::Arc, time::Duration};

use steadfast_classify::{Class, Failure};
use steadfast_retry::{Backoff, Jitter, RetryLayer, Settings};
use tower::{Layer, service_fn};

mod support;
use support::{Counting, Request, failed, layer, ms, run_on, secs, server};

/// Waits of whole seconds, far apart on a clock of milliseconds.
fn wide(jitter: Jitter) -> Settings {
    let hour = secs(60 * 60);
    let backoff = Backoff::new(hour, hour * 8, jitter).unwrap();
    Settings::new()
        .with_backoff(backoff)
        .with_max_wait(hour * 8)
}

/// The waits of one call on each of so many clones of one service.
async fn waits_of_clones(layer: &RetryLayer, clones: usize) -> Vec<Vec<Duration>> {
    let (server, mut handle) = server();
    let service = layer.layer(server);
    let mut waits = Vec::new();
    for _ in 0..clones {
        let clone = service.clone();
        let script = vec![failed(Class::NotSent); 7];
        let run = run_on(clone, &mut handle, Request::write(), script).await;
        waits.push(run.waits());
    }
    waits
}

#[tokio::test(start_paused = true)]
async fn trap_t1_no_two_clones_of_a_service_wait_equally_long() {
    for jitter in [Jitter::Additive(0.2), Jitter::Full] {
        let layer = layer(wide(jitter).with_max_retries(6)).with_seed(1);

        let waits = waits_of_clones(&layer, 1_000).await;

        let sequences: HashSet<_> = waits.iter().collect();
        assert_eq!(sequences.len(), 1_000, "{jitter:?}");
        // Some of a thousand meet on one of a few million milliseconds.
        for retry in 0..6 {
            let distinct: HashSet<_> = waits.iter().map(|waits| waits[retry]).collect();
            assert!(
                distinct.len() > 990,
                "{jitter:?} {retry}: {}",
                distinct.len()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_waits() {
    let settings = wide(Jitter::Full).with_max_retries(6);
    let one = waits_of_clones(&layer(settings).with_seed(7), 3).await;
    let same = waits_of_clones(&layer(settings).with_seed(7), 3).await;
    let other = waits_of_clones(&layer(settings).with_seed(8), 3).await;

    assert_eq!(one, same);
    assert_ne!(one, other);
}

#[tokio::test(start_paused = true)]
async fn two_layers_of_the_same_settings_do_not_wait_equally_long() {
    let settings = wide(Jitter::Full).with_max_retries(6);

    let one = waits_of_clones(&layer(settings), 1).await;
    let other = waits_of_clones(&layer(settings), 1).await;

    assert_ne!(one, other);
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_no_longer_than_the_cap_and_not_shorter_than_the_formula() {
    let layer = layer(Settings::new().with_max_retries(6)).with_seed(3);
    for waits in waits_of_clones(&layer, 50).await {
        for (retry, wait) in waits.iter().enumerate() {
            let least = ms(500 << retry).min(secs(8).div_f64(1.2));
            assert!(*wait >= least, "{wait:?} before retry {retry}");
            assert!(
                *wait <= (least.mul_f64(1.2) + ms(1)).min(secs(8)),
                "{wait:?} before retry {retry}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn trap_p16_all_services_of_a_layer_share_its_budget() {
    let budget = Counting::up_to(2);
    let layer = layer(Settings::new()).with_budget(Arc::clone(&budget));
    for (attempts, layer) in [(3, layer.clone()), (1, layer.clone()), (1, layer)] {
        let (server, mut handle) = server();
        let service = layer.layer(server);
        let script = vec![failed(Class::NotSent); attempts];

        run_on(service, &mut handle, Request::write(), script).await;
    }
    assert_eq!(budget.deposits(), 3);
}

#[test]
fn trap_s2_each_call_pays_in_once_and_each_retry_takes_out_once_between_threads() {
    let budget = Counting::up_to(u32::MAX);
    let service = layer(support::even().with_max_retries(2))
        .with_budget(Arc::clone(&budget))
        .layer(service_fn(|_: Request| async {
            Err::<(), _>(Failure::new(Class::NotSent))
        }));

    std::thread::scope(|scope| {
        for _ in 0..4 {
            let service = service.clone();
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .start_paused(true)
                    .build()
                    .unwrap();
                runtime.block_on(async {
                    for _ in 0..500 {
                        let call = tower::ServiceExt::oneshot(service.clone(), Request::write());
                        assert_eq!(call.await.unwrap_err().attempts(), 3);
                    }
                });
            });
        }
    });

    assert_eq!(budget.deposits(), 2_000);
    assert_eq!(budget.withdrawals(), 4_000);
}

//! What a call waits for on our own side is no fault of the server's.

use std::num::{NonZeroU32, NonZeroUsize};

use steadfast_classify::{Call as _, Flight};
use steadfast_pool::{Lease, PoolSettings, ServerConfig, ToolCall};
use tokio::time::sleep;

use crate::support::{millis, pool, pool_with, secs, server, settle, slow, spawn_call};

fn tracked(lease: &Lease, flight: &Flight) -> ToolCall {
    let mut call = lease.tool("w");
    let context = call.context_mut().expect("it has one");
    context.set_flight(flight.clone());
    call
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_a_place_is_held_until_it_has_one() {
    let (pool, _world) = pool();
    let session = pool.session("s");
    let one = NonZeroU32::new(1).expect("not zero");
    let config = ServerConfig::stdio("a", "fake").max_in_flight(one).build();
    let lease = session.acquire(&config.expect("a good one")).await;
    let lease = lease.expect("it starts");
    let _first = spawn_call(&lease, slow(&lease, 1_000));
    settle().await;
    let flight = Flight::new();

    let mut call = slow(&lease, 1_000);
    call.context_mut()
        .expect("it has one")
        .set_flight(flight.clone());
    let second = spawn_call(&lease, call);
    settle().await;
    assert!(flight.is_held());

    sleep(millis(1_100)).await;
    assert!(!flight.is_held(), "it has its place");
    second.await.expect("no panic").expect("and its answer");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_held_while_its_server_waits_for_others_to_start() {
    let one = NonZeroUsize::new(1).expect("not zero");
    let (pool, world) = pool_with(PoolSettings::default().with_max_starting(one));
    for name in ["first", "second"] {
        world.plan(name, |plan| plan.start = secs(2));
    }
    let session = pool.session("s");
    let flights = [Flight::new(), Flight::new()];
    let calls = ["first", "second"].map(|name| session.lease(&server(name)).expect("it is open"));
    let calls: Vec<_> = calls
        .iter()
        .zip(&flights)
        .map(|(lease, flight)| spawn_call(lease, tracked(lease, flight)))
        .collect();
    let held = || flights.each_ref().map(Flight::is_held);

    sleep(secs(1)).await;
    assert_eq!(held(), [false, true], "only one may start");
    sleep(secs(2)).await;
    assert_eq!(held(), [false, false], "now it is the other's own time");

    for call in calls {
        call.await.expect("no panic").expect("it starts in the end");
    }
}

//! Calls under way: their order, their end, and who gives up on them.

use std::{sync::Arc, time::Duration};

use futures::future::{join_all, poll_immediate};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::model::ProtocolVersion;
use serde_json::json;
use steadfast_classify::{Call as _, Class, Flight, Phase, Stage};
use steadfast_pool::{HttpConnect, Lease, ServerConfig, ToolCall};
use tokio::time::sleep;
use tower::ServiceExt as _;

use crate::support::{
    Reply, Server, Step, acquired, answer, call, config, pool, pool_with, soon, text, tools,
};

/// A server whose tool `w` does not answer.
async fn mute() -> Server {
    Server::start(|seen| (seen.tool()? == "w").then(|| Reply::new([Step::Hang]))).await
}

/// A call with a flight that the test sees.
fn tracked(tool: &str) -> (ToolCall, Flight) {
    let flight = Flight::new();
    let mut call = ToolCall::new(tool);
    let context = call.context_mut().expect("it has one");
    context.set_flight(flight.clone());
    (call, flight)
}

/// Waits until something of a call was sent.
async fn sent(flight: &Flight) {
    soon(async {
        while flight.stage().0 != Stage::Sent {
            sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn nothing_is_sent_before_the_server_has_taken_the_end_of_the_handshake() {
    let server = Server::start(|seen| {
        let slow = Reply::status(202, &[], "").after(Duration::from_millis(300));
        (seen.kind() == "notifications/initialized").then_some(slow)
    })
    .await;
    let pool = pool();
    acquired(&pool, &config(&server)).await;

    let initialized = server.of("notifications/initialized")[0].at;
    let listed = server.of("tools/list")[0].at;
    assert!(listed - initialized >= Duration::from_millis(300));
}

#[tokio::test]
async fn notice_that_the_server_does_not_take_holds_up_no_request() {
    let server = Server::start(|seen| match seen.kind().as_str() {
        "notifications/cancelled" => Some(Reply::new([Step::Hang])),
        _ => (seen.tool()? == "w").then(|| Reply::new([Step::Hang])),
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    let (order, flight) = tracked("w");
    let mut waiting = lease.clone().oneshot(order);
    assert!(poll_immediate(&mut waiting).await.is_none());
    tokio::select! {
        _ = &mut waiting => panic!("it is not answered"),
        () = sent(&flight) => {}
    }
    drop(waiting);

    assert_eq!(text(&call(&lease, "r").await.unwrap()), "done");
    server.until("notifications/cancelled", 1).await;
}

#[tokio::test]
async fn n01_a_call_that_is_dropped_is_cancelled_once_before_the_next_http() {
    let server = mute().await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    give_up(&lease).await;
    call(&lease, "r").await.unwrap();

    let cancels = server.until("notifications/cancelled", 1).await;
    let calls = server.of("tools/call");
    assert_eq!(cancels[0].body["params"]["requestId"], calls[0].body["id"]);
    assert_eq!(cancels[0].header("mcp-session-id"), Some("session-1"));
    assert!(cancels[0].at <= calls[1].at, "the next call came first");
    server.until_left(calls[0].connection).await;
    assert_eq!(server.count("notifications/cancelled"), 1);
}

#[tokio::test]
async fn n01_fifty_calls_dropped_at_once_are_cancelled_once_each_http() {
    let server = mute().await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .max_in_flight(50.try_into().unwrap())
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;

    join_all((0..50).map(|_| give_up(&lease))).await;

    let cancels = server.until("notifications/cancelled", 50).await;
    let mut ids: Vec<_> = cancels
        .iter()
        .map(|cancel| cancel.body["params"]["requestId"].to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 50);
}

/// Calls `w`, and leaves once it was sent.
async fn give_up(lease: &Lease) {
    let (order, flight) = tracked("w");
    tokio::select! {
        _ = lease.clone().oneshot(order) => panic!("it is not answered"),
        () = sent(&flight) => {}
    }
}

#[tokio::test]
async fn n01_without_a_handshake_closing_the_stream_is_the_cancel_http() {
    let server = Server::speaking("2026-07-28", |seen| {
        (seen.tool()? == "w").then(|| Reply::new([Step::Hang]))
    })
    .await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .protocol_version(ProtocolVersion::V_2026_07_28)
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;

    give_up(&lease).await;
    let calls = server.until("tools/call", 1).await;
    server.until_left(calls[0].connection).await;
    call(&lease, "r").await.unwrap();

    assert_eq!(server.count("notifications/cancelled"), 0);
}

/// Never finds a host once it was told to stop.
struct Resolver(Arc<std::sync::atomic::AtomicBool>, u16);

impl Resolve for Resolver {
    fn resolve(&self, _: Name) -> Resolving {
        let (stuck, port) = (self.0.load(std::sync::atomic::Ordering::SeqCst), self.1);
        Box::pin(async move {
            if stuck {
                std::future::pending::<()>().await;
            }
            let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
            Ok(Box::new(std::iter::once(address)) as Addrs)
        })
    }
}

#[tokio::test]
async fn call_that_waits_for_a_connection_can_be_taken_back() {
    // No connection is left, so that the call needs a new one.
    let server = Server::start(|seen| match seen.kind().as_str() {
        "tools/list" => Some(Reply::json(&tools(seen)).then(Step::Close)),
        "GET" => Some(Reply::status(405, &[], "").then(Step::Close)),
        _ => None,
    })
    .await;
    let stuck = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (switch, port) = (Arc::clone(&stuck), server.port());
    let http = HttpConnect::new().with_client(move |client| {
        client
            .dns_resolver(Resolver(Arc::clone(&switch), port))
            .no_proxy()
    });
    let pool = pool_with(http);
    let config = ServerConfig::http("s", format!("http://some.example:{port}/mcp"));
    let lease = acquired(&pool, &config.build().unwrap()).await;
    sleep(Duration::from_millis(100)).await;
    stuck.store(true, std::sync::atomic::Ordering::SeqCst);

    let (order, flight) = tracked("w");
    let mut waiting = lease.clone().oneshot(order);
    assert!(poll_immediate(&mut waiting).await.is_none());
    sleep(Duration::from_millis(200)).await;
    assert!(poll_immediate(&mut waiting).await.is_none());
    assert_eq!(flight.stage().0, Stage::Queued);
    drop(waiting);

    assert_eq!(flight.stage().0, Stage::Withdrawn);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(server.count("tools/call"), 0);
    assert_eq!(server.count("notifications/cancelled"), 0);
}

#[tokio::test]
async fn j04_as_many_calls_run_at_once_as_the_pool_lets_through_http() {
    let server = Server::start(|seen| {
        let slow = Reply::json(&answer(seen, "slow")).after(Duration::from_millis(300));
        seen.tool().map(|_| slow)
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    let begun = tokio::time::Instant::now();
    let results = soon(join_all((0..16).map(|_| call(&lease, "w")))).await;

    assert!(results.iter().all(Result::is_ok));
    // One after the other they would take 4.8 s.
    assert!(begun.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a09_calls_whose_server_goes_away_end_soon_and_say_what_is_known_http() {
    let server = mute().await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;
    let calls = (0..6).map(|_| call(&lease, "w"));
    let ending = async {
        server.until("tools/call", 6).await;
        drop(server);
    };

    let (results, ()) = tokio::join!(join_all(calls), ending);

    for result in results {
        assert_eq!(result.unwrap_err().class(), Class::Unknown);
    }
    let failure = call(&lease, "w").await.unwrap_err();
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect));
}

#[tokio::test]
async fn n04_answers_that_nobody_waits_for_harm_nobody_http() {
    let server = Server::start(|seen| {
        let (twice, mut old) = (answer(seen, "twice"), answer(seen, "old"));
        old["id"] = json!(seen.body["id"].as_i64()? - 1);
        (seen.tool()? == "w").then(|| {
            Reply::events()
                .event(&old)
                .event(&twice)
                .event(&twice)
                .end()
        })
    })
    .await;
    let pool = pool();
    let lease = acquired(&pool, &config(&server)).await;

    for _ in 0..50 {
        assert_eq!(text(&call(&lease, "w").await.unwrap()), "twice");
        assert_eq!(text(&call(&lease, "r").await.unwrap()), "done");
    }
}

//! Frames that do not come as one would wish, and how a WebSocket is closed.

use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast::{
    Class, Pool,
    pool::{Lost, Status},
};
use steadfast_tests::probe::EventKind;
use tokio::time::Instant;

use crate::{
    over::{Over, listen},
    support::{Agent, Stage, ms, pool_settings, quick, secs, signal, text, until},
    websocket::{config, status},
};

const WIDE: &str = "é, €, 語, 😀";

#[tokio::test]
async fn m03_every_kind_of_frame_that_holds_a_message_is_read_websocket() {
    for websocket in [
        json!({"binary": true}),
        json!({"fragment": 1}),
        json!({"fragment": 7}),
        json!({"ping": true}),
        json!({"binary": true, "fragment": 3, "ping": true}),
    ] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        let knobs = json!({"websocket": websocket, "wire": {"bom": true, "crlf": true}});
        let config = Over::WebSocket.server(&stage, &knobs).await;
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

        for size in [1, 125, 126, 65_535, 65_536, 200_000] {
            let sent = format!("{WIDE}{}", "x".repeat(size));
            let answer = agent.call("w", json!({"echo": sent})).await.unwrap();
            assert!(text(&answer.value) == sent, "{websocket}, {size}");
        }
        assert_eq!(stage.received("initialize"), 1, "{websocket}");
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn m03_bad_bytes_in_a_binary_frame_cost_only_themselves_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let knobs = json!({"websocket": {"binary": true}, "wire": {"bad_line": true}});
    let config = Over::WebSocket.server(&stage, &knobs).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let spoilt = json!({"echo": WIDE, "bad_utf8": true});
    let answer = agent.call("w", spoilt).await.unwrap();

    assert_eq!(text(&answer.value), format!("{WIDE}\u{fffd}\u{fffd}"));
    assert_eq!(stage.received("initialize"), 1);
    stage.end(pool).await;
}

#[tokio::test]
async fn m03_bad_bytes_in_a_text_frame_end_the_connection_soon_websocket() {
    // RFC 6455, section 8.1: a client has to fail the connection.
    lost(
        json!({"tag": "spoilt", "bad_utf8": true}),
        "text that is not UTF-8",
    )
    .await;
}

#[tokio::test]
async fn m07_a_message_that_is_too_long_ends_the_connection_soon_websocket() {
    lost(
        json!({"tag": "large", "line_bytes": 17 << 20}),
        "a message that is longer than allowed",
    )
    .await;
}

#[tokio::test]
async fn m07_an_answer_that_ends_with_the_connection_is_an_answer_websocket() {
    for on_exit in ["close", "eof", "process"] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        let knobs = json!({"websocket": {"on_exit": on_exit}});
        let config = Over::WebSocket.server(&stage, &knobs).await;
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

        let last = json!({"echo": "last", "exit_answered": 0});
        let answer = agent.call("w", last).await.unwrap();

        assert_eq!(text(&answer.value), "last", "{on_exit}");
        assert!(until(|| status(&pool) == Status::Idle).await, "{on_exit}");
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn a_close_frame_ends_the_calls_and_says_why_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let knobs = json!({"websocket": {
        "on_exit": "close", "close_code": 1013, "close_reason": "too many\nclients",
    }});
    let config = Over::WebSocket.server(&stage, &knobs).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let waits = agent.begin("w", json!({"tag": "waits", "stall": true}));
    stage.executed_soon("waits").await;
    let dies = agent.call("w", json!({"tag": "dies", "exit_after": 1}));
    let (dies, waits) = tokio::join!(dies, waits);

    for outcome in [dies, waits.unwrap()] {
        let failure = outcome.unwrap_err();
        assert_eq!(failure.class(), Class::Unknown, "{failure}");
        let lost: &Lost = failure.find_source().unwrap();
        assert_eq!(lost.reason, "the server closed the connection");
        let told = failure.to_string();
        assert!(told.contains("code 1013 (too many clients)"), "{told}");
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn a_server_that_breaks_off_the_handshake_is_told_with_its_reason_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let knobs = json!({
        "start": {"exit_on_initialize": 1},
        "websocket": {"on_exit": "close", "close_code": 1008, "close_reason": "no licence"},
    });
    let config = Over::WebSocket.server(&stage, &knobs).await;

    let failure = session.acquire(&config).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    let told = failure.to_string();
    assert!(told.contains("code 1008 (no licence)"), "{told}");
    stage.end(pool).await;
}

#[tokio::test]
async fn a_socket_that_is_closed_is_closed_properly_and_in_time_websocket() {
    for (ignore_close, least) in [(false, ms(0)), (true, ms(900))] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        let knobs = json!({"websocket": {"ignore_close": ignore_close}});
        let config = Over::WebSocket.server(&stage, &knobs).await;
        let _lease = session.acquire(&config).await.unwrap();

        let begun = Instant::now();
        let report = pool.drain_all(secs(10)).await;

        let took = begun.elapsed();
        assert_eq!(report.forced, [], "{ignore_close}");
        assert!(took >= least && took < secs(3), "{ignore_close}: {took:?}");
        let seen = |kind| stage.pids(kind).len();
        assert!(until(|| seen(EventKind::Eof) == 1).await, "{ignore_close}");
        assert_eq!(seen(EventKind::Close), 1, "{ignore_close}");
        stage.ended(pool).await;
    }
}

#[tokio::test]
async fn j05_a_session_that_cancels_leaves_the_connection_to_the_others_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let (a, b) = (pool.session("a"), pool.session("b"));
    let config = Over::WebSocket.server(&stage, &json!({})).await;
    let first = Agent::new(a.acquire(&config).await.unwrap(), quick());
    let second = Agent::new(b.acquire(&config).await.unwrap(), quick());
    let entry = pool.snapshot().servers["probe"].entry_summary[0].clone();
    assert_eq!((entry.refs, entry.pid), (2, None));
    assert_eq!(pool.snapshot().subprocess_count, 0);

    let cancels = first.begin("w", json!({"tag": "cancels", "delay_ms": 5000}));
    let stays = second.begin(
        "w",
        json!({"tag": "stays", "delay_ms": 1000, "echo": "stays"}),
    );
    stage.executed_soon("cancels").await;
    stage.executed_soon("stays").await;
    cancels.abort();

    assert_eq!(text(&stays.await.unwrap().unwrap().value), "stays");
    let cancelled = |event: &&steadfast_tests::probe::Event| event.request_id.is_some();
    let events = stage
        .events_with(|events| events.iter().filter(cancelled).count() == 1)
        .await;
    let call = |tag: &str| {
        let call = events.iter().find(|e| e.tag.as_deref() == Some(tag));
        call.and_then(|event| event.id.clone())
    };
    let cancel = events.iter().find(cancelled).unwrap();
    assert_eq!(cancel.request_id, call("cancels"));
    assert_eq!(stage.received("initialize"), 1);
    stage.end(pool).await;
}

#[tokio::test]
async fn d08_what_waits_for_a_server_that_is_killed_was_not_sent_websocket() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let probe = listen(&stage, &json!({}));
    let config = config(&probe);
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let busy = json!({"tag": "written", "stall": true, "blocking": true});
    let written = agent.begin("w", busy);
    stage.executed_soon("written").await;
    let large = "x".repeat(Over::WebSocket.stuck_at());
    let torn = agent.begin("w", json!({"tag": "torn", "ask_params": large}));
    assert!(until(|| spy.count("pending") == 2).await);
    tokio::time::sleep(ms(100)).await;
    let queued = agent.begin("w", json!({"tag": "queued"}));
    assert!(until(|| spy.count("pending") == 3).await);

    probe.start_again();

    assert_eq!(written.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert_eq!(torn.await.unwrap().unwrap_err().class(), Class::Unknown);
    assert!(queued.await.unwrap().unwrap().is_live());
    let executed = ["written", "torn", "queued"].map(|tag| stage.executed(tag));
    assert_eq!(executed, [1, 0, 1]);
    stage.end(pool).await;
}

#[tokio::test]
async fn d08_what_comes_behind_an_unread_end_was_not_sent_websocket() {
    for on_exit in ["close", "eof", "reset"] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        let knobs = json!({"websocket": {"on_exit": on_exit}});
        let config = Over::WebSocket.server(&stage, &knobs).await;
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
        let ends = json!({"tag": "ends", "delay_before_ms": 100, "exit_after": 1});
        let ends = agent.begin("w", ends);
        assert!(until(|| stage.received("tools/call") == 1).await);

        // Nothing in this runtime hears of the end before the next call is made.
        std::thread::sleep(ms(400));
        let next = agent.call("w", json!({"tag": "next"})).await;

        assert!(next.unwrap().is_live(), "{on_exit}");
        let failure = ends.await.unwrap().unwrap_err();
        assert_eq!(failure.class(), Class::Unknown, "{on_exit}: {failure}");
        assert_eq!(stage.executed("next"), 1, "{on_exit}");
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn a_server_that_stands_still_is_left_to_the_limits_websocket() {
    let stage = Stage::enter().await;
    let pool = Pool::new(pool_settings()).unwrap();
    let session = pool.session("a");
    let probe = listen(&stage, &json!({}));
    let limits = steadfast::timeout::Settings::new().with_read(ms(500));
    let config = config(&probe);
    let agent = Agent::new(
        session.acquire(&config).await.unwrap(),
        quick().with_timeout(limits),
    );
    let pid = stage.started()[0];
    signal(pid, Signal::STOP);

    let failure = agent
        .call("w", json!({"tag": "stopped"}))
        .await
        .unwrap_err();

    signal(pid, Signal::CONT);
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert!(failure.may_have_run(), "{failure}");
    assert_eq!(failure.attempts(), 1, "{failure}");
    let answer = agent.call("w", json!({"echo": "again"})).await.unwrap();
    assert_eq!(text(&answer.value), "again");
    assert_eq!(stage.received("initialize"), 1, "it is the same connection");
    stage.end(pool).await;
}

/// One call whose answer breaks the connection, and the next, which gets another.
async fn lost(arguments: Value, why: &str) {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = Over::WebSocket.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let tag = arguments["tag"].as_str().unwrap().to_owned();
    let failure = agent.call("w", arguments).await.unwrap_err();

    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    let told = failure.to_string();
    assert!(told.contains(why), "{told}");
    assert_eq!(stage.executed(&tag), 1, "it was not repeated");
    let answer = agent.call("w", json!({"echo": "fine"})).await.unwrap();
    assert_eq!(text(&answer.value), "fine");
    assert_eq!(stage.received("initialize"), 2);
    stage.end(pool).await;
}

//! Bytes that do not come as one would wish.

use futures::future::join_all;
use serde_json::{Value, json};
use steadfast::pool::Status;
use steadfast_tests::probe::Event;

use crate::support::{Agent, Stage, quick, text, until, wait_unseen};

/// Texts around the sizes of pipes and of their buffers.
const SIZES: [usize; 7] = [4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20];

#[tokio::test]
async fn m03_bad_bytes_cost_at_most_the_characters_they_stand_for_stdio() {
    const WIDE: &str = "é, €, 語, 😀";

    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    for wire in [
        json!({"bad_line": true}),
        json!({"bom": true}),
        json!({"crlf": true}),
        json!({"piece": 1}),
        json!({"bad_line": true, "bom": true, "crlf": true, "piece": 3}),
    ] {
        let config = stage.server(&json!({"wire": wire}));
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

        let answer = agent.call("w", json!({"echo": WIDE})).await.unwrap();
        assert_eq!(text(&answer.value), WIDE, "{wire}");

        let spoilt = json!({"echo": WIDE, "bad_utf8": true});
        let answer = agent.call("w", spoilt).await.unwrap();
        let repaired = format!("{WIDE}\u{fffd}\u{fffd}");
        assert_eq!(text(&answer.value), repaired, "{wire}");

        let answer = agent.call("w", json!({"echo": "fine"})).await.unwrap();
        assert_eq!(text(&answer.value), "fine", "{wire}");
    }
    assert_eq!(stage.started().len(), 5, "none was started anew");
    stage.end(pool).await;
}

#[tokio::test]
async fn m06_a_message_is_the_same_however_it_is_cut_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    for (piece, sizes) in [
        (None, &SIZES[..]),
        (Some(65_536), &SIZES[..]),
        (Some(4096), &SIZES[..]),
        // A write of its own for each byte takes its time.
        (Some(1), &SIZES[..3]),
    ] {
        let config = stage.server(&json!({"wire": {"piece": piece}}));
        let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
        for &size in sizes {
            let sent = letters(size);
            let answer = agent.call("w", json!({"echo": sent})).await.unwrap();
            assert!(text(&answer.value) == sent, "{size} in {piece:?}");

            let padded = json!({"echo": "y", "line_bytes": size});
            let answer = agent.call("w", padded).await.unwrap();
            let pad = text(&answer.value).strip_prefix('y').unwrap();
            assert!(pad.bytes().all(|byte| byte == b'x'), "{size} in {piece:?}");
            assert!(pad.len() + 400 > size, "a line of {size}, {}", pad.len());
        }
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn m06_progress_that_nobody_takes_holds_up_no_answer_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick());

    let calls = SIZES.map(async |size| {
        let progress = json!({"count": 1000, "token": "asked"});
        let sent = letters(size);
        let answer = agent.call("w", json!({"echo": sent, "progress": progress}));
        assert!(text(&answer.await.unwrap().value) == sent, "{size}");
    });
    join_all(calls).await;

    stage.end(pool).await;
}

#[tokio::test]
async fn m07_an_answer_that_ends_with_the_stream_is_an_answer_stdio() {
    for last in [
        json!({"echo": "last", "no_newline": true, "exit_answered": 0}),
        json!({"echo": "last", "exit_answered": 0}),
    ] {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let session = pool.session("a");
        let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
        let agent = Agent::new(lease, quick());
        let status = || pool.snapshot().servers["probe"].entry_summary[0].status;

        let answer = agent.call("w", last.clone()).await.unwrap();

        assert_eq!(text(&answer.value), "last", "{last}");
        assert!(until(|| status() == Status::Idle).await, "{last}");
        stage.end(pool).await;
    }
}

#[tokio::test]
async fn m07_all_answers_that_came_before_the_end_are_heard_stdio() {
    const CALLS: usize = 200;

    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let last_words = json!({
        "call": {"delay_ms": 300},
        "wire": {"batch": CALLS, "batch_wait_ms": 400},
        "process": {"exit_after_calls": CALLS},
    });
    let config = stage.server(&last_words);
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let calls: Vec<_> = (0..CALLS)
        .map(|n| agent.begin("w", json!({"echo": n})))
        .collect();
    let called = |event: &&Event| event.method.as_deref() == Some("tools/call");
    stage
        .events_with(|events| events.iter().filter(called).count() == CALLS)
        .await;
    // Nothing in this runtime runs until all answers lie in the pipe, and their server is
    // dead: more than is read in one go.
    wait_unseen(stage.started()[0]);

    for (number, call) in calls.into_iter().enumerate() {
        let answer = call.await.unwrap().unwrap();
        assert_eq!(text(&answer.value), number.to_string());
    }
    stage.end(pool).await;
}

#[tokio::test]
async fn m07_a_line_that_is_too_long_costs_none_of_its_neighbours_stdio() {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let batches = json!({"wire": {"batch": 2, "batch_junk_bytes": 17 << 20}});
    let lease = session.acquire(&stage.server(&batches)).await.unwrap();
    let agent = Agent::new(lease, quick());
    let listing = spy.count("oversized");

    let calls = ["before", "after"].map(|echo| agent.call("w", json!({"echo": echo})));
    let answers = join_all(calls).await;

    let answers: Vec<Value> = answers
        .into_iter()
        .map(|answer| text(&answer.unwrap().value).into())
        .collect();
    assert_eq!(answers, ["before", "after"]);
    assert_eq!(spy.count("oversized") - listing, 1);
    let later = agent.call("w", json!({"echo": "later"})).await;
    assert_eq!(text(&later.unwrap().value), "later");
    assert_eq!(stage.started().len(), 1, "it was not started anew");
    stage.end(pool).await;
}

/// A text in which no piece looks like its neighbours.
fn letters(size: usize) -> String {
    let mut random = fastrand::Rng::with_seed(size as u64);
    (0..size).map(|_| random.alphanumeric()).collect()
}

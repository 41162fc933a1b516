//! Bodies of every size, in every kind of piece.

use std::collections::BTreeSet;

use serde_json::json;
use steadfast::{Class, timeout};
use steadfast_tests::probe::Cut;
use tokio::time::Instant;

use crate::{
    place::{Place, once},
    support::{SOON, ms, text},
};

#[tokio::test]
async fn m06_answers_of_every_size_and_in_every_piece_are_whole_http() {
    let sizes = [4095, 4096, 4097, 65_535, 65_536, 65_537, 1 << 20];
    let place = Place::enter(json!({})).await;
    let agent = place.agent(json!({})).await;
    for format in ["json", "sse"] {
        for piece in [Some(1), Some(4096), Some(65_536), None] {
            for size in sizes {
                // A mebibyte byte by byte would say no more than 64 KiB do.
                if piece == Some(1) && size > 10_000 {
                    continue;
                }
                let mut fault = json!({"format": format, "chunked": size % 2 == 0});
                if let Some(piece) = piece {
                    fault["piece"] = json!(piece);
                }
                let answer = agent.call("r", json!({"bytes": size, "http": fault})).await;
                let answer = answer.unwrap_or_else(|failure| panic!("{fault} {size}: {failure}"));
                assert_eq!(text(&answer.value), "x".repeat(size), "{fault} {size}");
            }
        }
    }
    place.end().await;
}

#[tokio::test]
async fn m06_a_thousand_notices_before_an_answer_block_nothing_http() {
    let place = Place::enter(json!({"answers": "sse"})).await;
    let agent = place.agent(json!({})).await;
    for size in [4096, 65_536, 1 << 20] {
        for token in ["asked", "invented"] {
            let progress = json!({"count": 1000, "token": token});
            let chatty = json!({"bytes": size, "progress": progress});
            let answer = agent.call("w", chatty).await.unwrap();
            assert_eq!(text(&answer.value).len(), size);
        }
    }
    place.end().await;
}

#[tokio::test]
async fn an_answer_longer_than_is_read_ends_its_call_only_http() {
    let place = Place::enter(json!({})).await;
    let agent = place.agent_with(json!({}), once().without_breaker()).await;
    for format in ["json", "sse"] {
        let tag = format!("{format} is too long");
        let long = json!({"tag": tag, "bytes": 17 << 20, "http": {"format": format}});
        let failure = agent.call("w", long).await.unwrap_err();

        assert_eq!(failure.class(), Class::Unknown, "{format}: {failure}");
        assert!(
            failure.to_string().contains("16777216"),
            "{format}: {failure}"
        );
        assert_eq!(place.stage.executed(&tag), 1);
        assert!(agent.call("w", json!({})).await.unwrap().is_live());
    }
    // The body of an error is not read to its end.
    let fault = json!({"status": 400, "body_bytes": 100_000_000_u64});
    let begun = Instant::now();
    let failure = agent.call("w", json!({"http": fault})).await.unwrap_err();
    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert!(failure.to_string().len() < 1000, "{failure}");
    assert!(begun.elapsed() < SOON);
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    place.end().await;
}

#[tokio::test]
async fn a_body_that_trickles_is_not_waited_for_longer_than_the_read_limit_http() {
    let place = Place::enter(json!({})).await;
    let limits = timeout::Settings::new().with_read(ms(500));
    let stack = once().without_breaker().with_timeout(limits);
    let agent = place.agent_with(json!({}), stack).await;
    for format in ["json", "sse"] {
        let tag = format!("{format} trickles");
        let fault = json!({"format": format, "piece": 1, "piece_gap_ms": 50});
        let begun = Instant::now();
        let failure = agent.call("w", json!({"tag": tag, "http": fault})).await;

        let failure = failure.unwrap_err();
        assert_eq!(failure.class(), Class::Timeout, "{format}: {failure}");
        assert!(begun.elapsed() < SOON, "{format}");
        assert_eq!(place.stage.executed(&tag), 1);
    }
    place.end().await;
}

#[tokio::test]
async fn a_request_that_is_not_read_may_have_run_unless_it_is_refused_http() {
    let place = Place::enter(json!({})).await;
    let limits = timeout::Settings::new().with_read(ms(500));
    let stack = once().without_breaker().with_timeout(limits);
    let agent = place.agent_with(json!({}), stack).await;
    for (fault, class, may_have_run) in [
        (json!({"cut": "stall"}), Class::Timeout, true),
        (json!({"cut": "reset"}), Class::Unknown, true),
        (json!({"status": 413}), Class::Answered, false),
        (json!({"status": 429}), Class::Overloaded, false),
    ] {
        for bytes in [10, 8 << 20] {
            let mut fault = fault.clone();
            fault["on"] = json!(["POST"]);
            fault["times"] = json!(1);
            fault["at"] = json!("unread");
            place.faults(json!([fault]));
            let begun = Instant::now();
            let long = json!({"tag": "unread", "echo": "x".repeat(bytes)});
            let failure = agent.call("w", long).await.unwrap_err();

            assert!(begun.elapsed() < SOON, "{fault} {bytes}: {failure}");
            assert_eq!(place.stage.executed("unread"), 0);
            // Refused while it is still being written, it may look like a break.
            let refused = failure.class() == class && failure.may_have_run() == may_have_run;
            let broken = bytes > 10 && failure.class() == Class::Unknown;
            assert!(refused || broken, "{fault} {bytes}: {failure}");
            place.faults(json!([]));
            assert!(agent.call("w", json!({})).await.unwrap().is_live());
        }
    }
    // Behind what it did not read it cannot see that its client has gone.
    place.probe.cut_all(Cut::Reset);
    place.end().await;
}

#[tokio::test]
async fn a_server_that_closes_each_connection_is_a_good_server_http() {
    for answers in ["json", "sse"] {
        let place = Place::enter(json!({"no_keep_alive": true, "answers": answers})).await;
        let agent = place.agent(json!({})).await;
        for number in 0..20 {
            let answer = agent.call("w", json!({"echo": number})).await.unwrap();
            assert_eq!(text(&answer.value), number.to_string());
        }
        let calls = place.requests("tools/call");
        let connections: BTreeSet<_> = calls.iter().map(|seen| seen.connection).collect();
        assert_eq!((calls.len(), connections.len()), (20, 20));
        place.end().await;
    }
}

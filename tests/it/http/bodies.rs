//! Bodies of every size, in every kind of piece.

use serde_json::json;
use steadfast::Class;

use crate::{
    place::{Place, once},
    support::{SOON, text},
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
    let begun = tokio::time::Instant::now();
    let failure = agent.call("w", json!({"http": fault})).await.unwrap_err();
    assert_eq!(failure.class(), Class::Answered, "{failure}");
    assert!(failure.to_string().len() < 1000, "{failure}");
    assert!(begun.elapsed() < SOON);
    assert!(agent.call("w", json!({})).await.unwrap().is_live());
    place.end().await;
}

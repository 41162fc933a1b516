//! What comes in between the messages.

use serde_json::json;
use steadfast_tests::probe::EventKind;

use super::Over;
use crate::support::{Agent, Stage, quick, text, until};

pub(crate) async fn m01_what_is_no_message_is_skipped_and_not_answered(over: Over) {
    let stage = Stage::enter().await;
    let (pool, spy) = stage.spied_pool();
    let session = pool.session("a");
    let noisy = json!({"wire": {
        "junk_first": ["Welcome!", "{\"listening\": \"here\"}"],
        "junk_between": "DEBUG one message",
        "junk_echo": "> got a message",
    }});
    let config = over.server(&stage, &noisy).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    for number in 0..20 {
        let answer = agent.call("w", json!({"echo": number})).await.unwrap();
        assert_eq!(text(&answer.value), number.to_string());
    }

    // The handshake is a request and a notice; then tools, prompts, resources and their
    // templates are listed.
    let (received, answered) = (6 + 20, 5 + 20);
    let junk = 2 + received + answered;
    assert!(
        until(|| spy.count("junk") == junk).await,
        "{}",
        spy.count("junk")
    );
    let kinds: Vec<_> = stage.events().into_iter().map(|event| event.kind).collect();
    let told = |kind| kinds.iter().filter(|seen| **seen == kind).count() as u64;
    assert_eq!(told(EventKind::Request) + told(EventKind::Notice), received);
    assert_eq!(told(EventKind::Reply) + told(EventKind::Unreadable), 0);
    stage.end(pool).await;
}

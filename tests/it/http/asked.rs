//! Servers that ask back, over HTTP.

use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use steadfast::Session;

use crate::{
    place::Place,
    support::{Agent, User, form, pool_settings, quick, told},
};

/// Two sessions with a user each, on one connection.
async fn two(place: &Place, fields: &Value) -> [(Session, User, Agent); 2] {
    let mut fields = fields.clone();
    fields["steadfast"] = json!({"shared": true, "max_in_flight": 64});
    let config = place.config(fields);
    let mut two = Vec::new();
    for name in ["one", "other"] {
        let user = User::default();
        let session = place.pool.session(name).with_handler(user.clone());
        let lease = session.acquire(&config).await.unwrap();
        two.push((session, user, Agent::new(lease, quick())));
    }
    two.try_into().ok().expect("two")
}

#[tokio::test]
async fn k08_a_question_in_the_stream_of_a_call_goes_to_its_session_http() {
    let place = Place::enter(json!({"answers": "sse"})).await;
    let [(_one, mine, first), (_other, theirs, second)] = two(&place, &json!({})).await;
    let asks = |message: &str| {
        let params = &form(message)["params"];
        json!({"ask": "elicitation/create", "ask_params": params, "delay_ms": 100})
    };

    let (a, b) = tokio::join!(first.call("w", asks("a")), second.call("w", asks("b")));

    let by = |answer: &Value| answer["result"]["content"]["by"].clone();
    assert_eq!(by(&told(&a.unwrap().value, "replied")), "one's");
    assert_eq!(by(&told(&b.unwrap().value, "replied")), "other's");
    let questions = |user: &User| -> Vec<_> {
        let asked = user.asked().into_iter();
        asked.map(|(_, question)| question).collect()
    };
    assert_eq!(questions(&mine), ["a"]);
    assert_eq!(questions(&theirs), ["b"]);
    assert_eq!(place.requests("initialize").len(), 1, "they share it");
    let capabilities = json!({"ask": "sampling/createMessage", "ask_params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "why?"}}],
        "maxTokens": 5}});
    let refused = first.call("w", capabilities).await.unwrap();
    let refused = told(&refused.value, "replied");
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    place.end().await;
}

/// Without a handshake each request says what can be answered: its own session's word.
#[tokio::test]
async fn a_call_announces_what_its_own_session_answers_http() {
    let knobs = json!({"http": {}, "start": {"lifecycle": "stateless"}});
    let place = Place::with(&knobs, pool_settings()).await;
    let only = json!({"protocolVersion": "2026-07-28"});
    let [(_one, mine, first), (_other, theirs, _second)] = two(&place, &only).await;
    let silent = place.pool.session("silent");
    let mut fields = only.clone();
    fields["steadfast"] = json!({"shared": true, "max_in_flight": 64});
    let lease = silent.acquire(&place.config(fields)).await.unwrap();
    let nobody = Agent::new(lease, quick());
    let rounds = json!({"rounds": [{"a": form("a")}, {"b": form("b")}]});

    let answer = first.call("w", rounds).await.unwrap();
    assert!(nobody.call("w", json!({})).await.unwrap().is_live());

    let answers = told(&answer.value, "told");
    assert_eq!(answers["b"]["content"]["by"], "one's", "{answers}");
    assert_eq!((mine.asked().len(), theirs.asked().len()), (2, 0));
    let events = place.stage.events();
    let calls = events
        .iter()
        .filter(|event| event.method.as_deref() == Some("tools/call"));
    let announced: Vec<_> = calls
        .map(|call| {
            let meta = call.meta.as_ref().expect("each has one");
            let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"];
            assert!(capabilities["extensions"].is_object(), "{capabilities}");
            capabilities["elicitation"]["form"].is_object()
        })
        .collect();
    assert_eq!(announced, [true, true, true, false]);
    place.end().await;
}

/// In the stream of a call, in the answer to one, and as a task; in an order of its own.
#[tokio::test]
async fn k08_no_question_reaches_the_wrong_session_http() {
    let place = Place::enter(json!({"answers": "sse"})).await;
    let [(_one, mine, first), (_other, theirs, second)] = two(&place, &json!({})).await;

    let calls = (0..1_000_u64).map(|n| {
        let (agent, name) = if n % 3 == 0 {
            (&first, "one")
        } else {
            (&second, "other")
        };
        async move {
            let question = format!("{name} {n}");
            let delay = n * 7_919 % 23;
            let (what, asks) = match n % 4 {
                0 => ("told", json!({"rounds": [{"k": form(&question)}]})),
                1 => {
                    let asks = json!({"k": form(&question)});
                    ("told", json!({"task": {"interval_ms": 100, "asks": asks}}))
                }
                _ => {
                    let params = &form(&question)["params"];
                    (
                        "replied",
                        json!({"ask": "elicitation/create", "ask_params": params}),
                    )
                }
            };
            let mut asks = asks;
            asks["delay_before_ms"] = json!(delay);
            let answer = agent.call("w", asks).await.unwrap();
            let answer = told(&answer.value, what);
            let by = if what == "told" {
                &answer["k"]["content"]["by"]
            } else {
                &answer["result"]["content"]["by"]
            };
            assert_eq!(*by, format!("{name}'s"), "{n}: {answer}");
        }
    });
    stream::iter(calls)
        .for_each_concurrent(32, |call| call)
        .await;

    let mut asked = 0;
    for (user, name) in [(mine, "one"), (theirs, "other")] {
        for (asking, question) in user.asked() {
            assert_eq!(&*asking.session, name);
            assert!(question.starts_with(&format!("{name} ")), "{question}");
            asked += 1;
        }
    }
    assert_eq!(asked, 1_000, "each was asked once");
    assert_eq!(place.requests("initialize").len(), 1, "they share it");
    place.end().await;
}

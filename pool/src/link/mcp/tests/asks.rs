use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use steadfast_classify::{Call as _, Class, Failure, Flight};
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use super::{
    Script, Scripted, millis, pool, server, tool,
    user::{User, form, prompt},
};
use crate::{Lease, Pool, PoolSettings, Root, ServerConfig, Unanswered};

/// A server that sends these requests while it works on a call, which takes 50 ms, or for
/// as long as `patience` says.
fn asking(requests: Vec<Value>, patience: u64) -> Script {
    Script::new(json!({"tools": {}}), move |method, _| match method {
        "tools/list" => vec![(millis(0), json!({"tools": [tool("w")]}))],
        "tools/call" => {
            let asks = requests.iter().enumerate().map(|(n, request)| {
                let mut request = request.clone();
                request["id"] = json!(format!("ask-{n}"));
                (millis(1), request)
            });
            let done = json!({"content": [{"type": "text", "text": "done"}]});
            asks.chain([(millis(patience), done)]).collect()
        }
        _ => Vec::new(),
    })
}

fn every_kind() -> Vec<Value> {
    vec![
        form("who?"),
        prompt("why?"),
        json!({"method": "roots/list"}),
    ]
}

/// A server that answers a call with a question so many times, then with what it was told.
fn rounds(questions: u64) -> Script {
    let asked = AtomicU64::new(0);
    Script::new(json!({"tools": {}}), move |method, params| {
        let answer = match method {
            "tools/list" => json!({"tools": [tool("w")]}),
            "tools/call" => {
                let n = asked.fetch_add(1, Ordering::Relaxed);
                if n < questions {
                    json!({"resultType": "input_required", "requestState": format!("state {n}"),
                        "inputRequests": {"k": form(&format!("question {n}"))}})
                } else {
                    let told = &params["inputResponses"]["k"]["content"]["answer"];
                    json!({"content": [{"type": "text", "text": told}]})
                }
            }
            _ => return Vec::new(),
        };
        vec![(millis(1), answer)]
    })
}

fn own() -> ServerConfig {
    let config = ServerConfig::stdio("scripted", "none").shared(false);
    config.build().expect("a good configuration")
}

fn rooted(script: &Script) -> Pool {
    let roots = [Root::new("file:///work").with_name("work")];
    let settings = PoolSettings::default().with_roots(roots);
    Pool::with_connector(settings, Scripted(script.clone())).expect("sensible settings")
}

async fn call(lease: &Lease) -> Result<CallToolResult, Failure> {
    lease.clone().oneshot(lease.tool("w")).await
}

fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().map_or("", |text| &text.text)
}

/// What the server was told on its `n`th question, once it was.
async fn told(script: &Script, n: usize) -> Value {
    let id = json!(format!("ask-{n}"));
    for _ in 0..100 {
        if let Some(reply) = script.replies().iter().find(|reply| reply["id"] == id) {
            return reply.clone();
        }
        sleep(millis(1)).await;
    }
    panic!("ask-{n} was left unanswered");
}

#[tokio::test(start_paused = true)]
async fn k08_nobody_is_asked_without_a_proof_and_nothing_is_left_unanswered() {
    let script = asking(every_kind(), 50);
    let pool = pool(&script);
    let (one, other) = (User::new("one"), User::new("other"));
    let first = pool.session("one").with_handler(one.clone());
    let second = pool.session("other").with_handler(other.clone());
    let mine = first.acquire(&server()).await.expect("it starts");
    let theirs = second.acquire(&server()).await.expect("it is there");

    let (mine, theirs) = futures::join!(call(&mine), call(&theirs));

    assert!(mine.is_ok() && theirs.is_ok());
    let announced = &script.received("initialize")[0]["params"]["capabilities"];
    for unroutable in ["elicitation", "sampling", "roots"] {
        assert!(announced.get(unroutable).is_none(), "{announced}");
    }
    for n in 0..3 {
        assert_eq!(told(&script, n).await["error"]["code"], -32601);
    }
    assert_eq!((one.asked().len(), other.asked().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn k08_a_session_is_asked_over_a_connection_of_its_own() {
    let script = asking(every_kind(), 50);
    let pool = rooted(&script);
    let (one, other) = (User::new("one"), User::new("other"));
    let first = pool.session("one").with_handler(one.clone());
    let second = pool.session("other").with_handler(other.clone());
    let mine = first.acquire(&own()).await.expect("it starts");
    let _theirs = second.acquire(&own()).await.expect("it starts too");

    call(&mine).await.expect("it is done");

    let announced = &script.received("initialize")[0]["params"]["capabilities"];
    assert!(announced["elicitation"]["form"].is_object(), "{announced}");
    assert!(announced["elicitation"].get("url").is_none(), "{announced}");
    assert!(announced["sampling"].is_object(), "{announced}");
    assert!(announced["roots"].is_object(), "{announced}");
    let answer = told(&script, 0).await;
    assert_eq!(answer["result"]["action"], "accept", "{answer}");
    assert_eq!(
        answer["result"]["content"]["answer"],
        "one says yes to who?"
    );
    let answer = told(&script, 1).await;
    assert_eq!(answer["result"]["content"]["text"], "one says yes to why?");
    let roots = told(&script, 2).await;
    assert_eq!(roots["result"]["roots"][0]["uri"], "file:///work");
    let (who, _) = &one.asked()[0];
    assert_eq!((&*who.session, &*who.server), ("one", "scripted"));
    assert_eq!(who.tool.as_deref(), Some("w"), "it runs alone");
    assert!(other.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_server_answers_with_questions_is_made_again_with_the_answers() {
    let script = rounds(3);
    let pool = pool(&script);
    let user = User::new("one");
    let session = pool.session("one").with_handler(user.clone());
    let lease = session.acquire(&server()).await.expect("it starts");

    let answer = call(&lease).await.expect("it is done");

    assert_eq!(text(&answer), "one says yes to question 2");
    let calls = script.received("tools/call");
    assert!(calls[0]["params"].get("requestState").is_none());
    for (n, pair) in calls.windows(2).enumerate() {
        assert_ne!(pair[0]["id"], pair[1]["id"]);
        assert_eq!(pair[1]["params"]["requestState"], format!("state {n}"));
    }
    assert_eq!(user.asked().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends_its_call() {
    let refusing = User::new("one").refusing();
    for (questions, user, why, calls) in [
        (1, None, Unanswered::Nobody, 1),
        (1, Some(refusing), Unanswered::Refused(-32_000), 1),
        (99, Some(User::new("one")), Unanswered::Endless, 11),
    ] {
        let script = rounds(questions);
        let pool = pool(&script);
        let session = pool.session("one");
        let session = match user {
            Some(user) => session.with_handler(user),
            None => session,
        };
        let lease = session.acquire(&server()).await.expect("it starts");

        let failure = call(&lease).await.expect_err("nobody answers");

        assert_eq!(failure.find_source(), Some(&why));
        assert_eq!(failure.class(), Class::Answered, "{why}");
        assert!(failure.may_have_run(), "{why}");
        assert_eq!(script.received("tools/call").len(), calls, "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_asked_is_let_go_with_the_session_the_call_or_the_connection() {
    for end in ["session", "call", "connection"] {
        let script = asking(vec![form("who?")], 600_000);
        let pool = pool(&script);
        let user = User::new("one").thinking(millis(600_000));
        let session = pool.session("one").with_handler(user.clone());
        let lease = session.acquire(&own()).await.expect("it starts");
        let run = tokio::spawn(async move { call(&lease).await });
        sleep(millis(100)).await;
        assert!(user.is_thinking(), "{end}");

        match end {
            "session" => session.close(),
            "call" => run.abort(),
            _ => assert!(pool.restart("scripted", None).await[0].restarted),
        }

        sleep(millis(300)).await;
        assert!(!user.is_thinking(), "{end}");
        if end == "call" {
            assert_eq!(told(&script, 0).await["error"]["code"], -32600, "{end}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_whoever_is_asked_is_not_the_servers() {
    // By a request of the server's own, and by its answer to the call.
    for script in [asking(vec![form("who?")], 60_000), rounds(1)] {
        let pool = pool(&script);
        let user = User::new("one").thinking(millis(40_000));
        let session = pool.session("one").with_handler(user.clone());
        let lease = session.acquire(&own()).await.expect("it starts");
        let flight = Flight::new();
        let mut call = lease.tool("w");
        let context = call.context_mut().expect("it has one");
        context.set_flight(flight.clone());
        let run = tokio::spawn(lease.clone().oneshot(call));

        sleep(millis(20_000)).await;
        assert!(user.is_thinking());
        assert!(flight.is_held(), "its read limit would have run out");
        sleep(millis(20_100)).await;
        let silent = flight.stage().1.elapsed();
        assert!(
            silent < millis(1_000),
            "the answer counts as a sign of life"
        );
        assert!(!flight.is_held());
        let answered = timeout(millis(30_000), run).await.expect("it ends");
        assert!(answered.expect("no panic").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_about_no_call_is_answered_too_and_not_waited_for_without_end() {
    let script = Script::new(json!({"tools": {}}), |method, _| match method {
        "tools/list" => {
            let mut ask = form("now?");
            ask["id"] = json!("ask-0");
            vec![
                (millis(0), json!({"tools": [tool("w")]})),
                (millis(100), ask),
            ]
        }
        _ => Vec::new(),
    });
    let pool = pool(&script);
    let user = User::new("one").thinking(millis(3_600_000));
    let session = pool.session("one").with_handler(user.clone());
    let _lease = session.acquire(&own()).await.expect("it starts");
    sleep(millis(200)).await;
    assert!(user.is_thinking());

    sleep(millis(300_000)).await;

    assert!(!user.is_thinking());
    assert_eq!(told(&script, 0).await["error"]["code"], -32600);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_too_much_is_answered_and_asks_nobody() {
    let flood: Vec<_> = (0..200).map(|n| form(&n.to_string())).collect();
    let script = asking(flood, 60_000);
    let pool = pool(&script);
    let user = User::new("one").thinking(millis(30_000));
    let session = pool.session("one").with_handler(user.clone());
    let lease = session.acquire(&own()).await.expect("it starts");

    call(&lease).await.expect("it is done");

    assert_eq!(user.asked().len(), 64);
    let mut refused = 0;
    for n in 0..200 {
        let answer = told(&script, n).await;
        refused += usize::from(answer["error"]["code"] == -32600);
    }
    assert_eq!(refused, 200 - 64);
}

/// A handler may hold what belongs to its session, without keeping it for ever.
#[tokio::test(start_paused = true)]
async fn a_handler_is_let_go_with_its_session() {
    let script = asking(Vec::new(), 50);
    let pool = pool(&script);
    let user = User::new("one");
    let session = pool.session("one").with_handler(user.clone());
    let lease = session.acquire(&own()).await.expect("it starts");
    call(&lease).await.expect("it is done");
    assert!(user.is_held());

    session.close();
    sleep(millis(10)).await;

    assert!(!user.is_held());
    drop(lease);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_answered_all_the_same() {
    let script = asking(
        vec![
            json!({"method": "elicitation/create", "params": {"message": 5}}),
            json!({"method": "no/such", "params": {}}),
        ],
        50,
    );
    let pool = pool(&script);
    let session = pool.session("one").with_handler(User::new("one"));
    let lease = session.acquire(&own()).await.expect("it starts");

    let answered = timeout(millis(1_000), call(&lease)).await;

    assert!(answered.expect("soon").is_ok());
    assert_eq!(told(&script, 0).await["error"]["code"], -32602);
    assert_eq!(told(&script, 1).await["error"]["code"], -32601);
}

//! Servers that ask back.

use serde_json::{Value, json};
use steadfast::pool::{Root, Unanswered};

use crate::support::{Agent, Stage, User, form, pool_settings, quick, text, told};

#[tokio::test]
async fn k08_a_shared_server_that_asks_back_is_refused_at_once_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let users = [User::default(), User::default()];
    let sessions = users.each_ref().map(|user| {
        let session = pool.session("shares");
        session.with_handler(user.clone())
    });
    let config = stage.server(&json!({}));
    let agents = [
        Agent::new(sessions[0].acquire(&config).await.unwrap(), quick()),
        Agent::new(sessions[1].acquire(&config).await.unwrap(), quick()),
    ];
    let others = agents[1].begin("w", json!({"tag": "other", "delay_ms": 500}));
    stage.executed_soon("other").await;

    for (method, params) in [
        ("elicitation/create", form("who?")["params"].clone()),
        ("sampling/createMessage", prompt()),
        ("roots/list", json!({})),
    ] {
        let asks = json!({"ask": method, "ask_params": params});
        let answer = agents[0].call("w", asks).await.unwrap();
        let reply = told(&answer.value, "replied");
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
    assert!(others.await.unwrap().unwrap().is_live());
    assert!(users.iter().all(|user| user.asked().is_empty()));
    assert_eq!(stage.started().len(), 1, "they share it");
    stage.end(pool).await;
}

#[tokio::test]
async fn k08_a_server_of_ones_own_that_asks_back_is_answered_stdio() {
    let stage = Stage::enter().await;
    let roots = [Root::new("file:///work")];
    let pool = stage.pool_with(pool_settings().with_roots(roots));
    let user = User::default();
    let session = pool.session("own").with_handler(user.clone());
    let own = json!({"steadfast": {"shared": false}});
    let config = stage.server_with(&json!({}), own);
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    let asks = json!({"ask": "elicitation/create", "ask_params": form("who?")["params"]});
    let answer = agent.call("w", asks).await.unwrap();
    let reply = told(&answer.value, "replied");
    assert_eq!(reply["result"]["content"]["by"], "own's", "{reply}");

    let asks = json!({"ask": "roots/list"});
    let answer = agent.call("w", asks).await.unwrap();
    let reply = told(&answer.value, "replied");
    assert_eq!(
        reply["result"]["roots"][0]["uri"], "file:///work",
        "{reply}"
    );

    // The user answers no questions to the model, and that was not announced either.
    let asks = json!({"ask": "sampling/createMessage", "ask_params": prompt()});
    let answer = agent.call("w", asks).await.unwrap();
    let reply = told(&answer.value, "replied");
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
    let (asking, question) = user.asked().remove(0);
    assert_eq!((asking.tool.as_deref(), &*question), (Some("w"), "who?"));
    stage.end(pool).await;
}

#[tokio::test]
async fn questions_in_an_answer_go_to_whoever_made_the_call_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let (one, other) = (User::default(), User::default());
    let first = pool.session("one").with_handler(one.clone());
    let second = pool.session("other").with_handler(other.clone());
    let config = stage.server(&json!({}));
    let mine = Agent::new(first.acquire(&config).await.unwrap(), quick());
    let theirs = Agent::new(second.acquire(&config).await.unwrap(), quick());
    let rounds = json!([{"a": form("first")}, {"a": form("second"), "b": form("too")}]);
    let task = json!({"interval_ms": 100, "asks": {"t": form("task")}});

    let (round, task) = tokio::join!(
        mine.call("w", json!({"tag": "rounds", "rounds": rounds})),
        theirs.call("w", json!({"tag": "task", "task": task})),
    );

    let round = round.unwrap();
    assert_eq!(text(&round.value), "ok");
    let answers = told(&round.value, "told");
    assert_eq!(answers["b"]["content"]["by"], "one's", "{answers}");
    let task = task.unwrap();
    let answers = told(&task.value, "told");
    assert_eq!(answers["t"]["content"]["by"], "other's", "{answers}");
    let questions = |user: &User| -> Vec<_> {
        let asked = user.asked().into_iter();
        asked.map(|(_, question)| question).collect()
    };
    assert_eq!(questions(&one), ["first", "second", "too"]);
    assert_eq!(questions(&other), ["task"], "asked once");
    assert_eq!((stage.executed("rounds"), stage.executed("task")), (1, 1));
    assert_eq!(stage.received("tasks/update"), 1);
    assert_eq!(stage.started().len(), 1, "they share it");
    stage.end(pool).await;
}

#[tokio::test]
async fn a_question_in_an_answer_that_nobody_answers_ends_the_call_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let agent = Agent::new(lease, quick());

    let asks = json!({"tag": "asks", "rounds": [{"a": form("who?")}]});
    let failure = agent.call("w", asks).await.unwrap_err();

    assert_eq!(
        failure.find_source(),
        Some(&Unanswered::Nobody),
        "{failure}"
    );
    assert!(failure.may_have_run(), "it was begun");
    assert_eq!(stage.received("tools/call"), 1);
    stage.end(pool).await;
}

fn prompt() -> Value {
    let question = json!({"role": "user", "content": {"type": "text", "text": "why?"}});
    json!({"messages": [question], "maxTokens": 5})
}

//! Two sessions on one connection, and a server that asks back in every way there is.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use steadfast_classify::Failure;
use tokio::time::sleep;
use tower::ServiceExt as _;

use super::{
    Script, Scripted, millis, server, tool,
    user::{User, form, prompt},
};
use crate::{Lease, Pool, PoolSettings, Progress, Root};

const CALLS: u64 = 1_000;

/// The ways to ask: in the answer to a call, as a task, and without any proof.
const WAYS: [&str; 8] = [
    "form in the answer",
    "prompt in the answer",
    "roots in the answer",
    "form of a task",
    "form about a task",
    "form",
    "prompt",
    "roots",
];

/// A server whose every call asks in one of these ways; each answer, each question and each
/// word about its progress names the call that it is about.
fn curious() -> Script {
    let tasks: Mutex<HashMap<String, Option<Value>>> = Mutex::default();
    let numbers = AtomicU64::new(0);
    Script::new(json!({"tools": {}}), move |method, params| {
        let n = numbers.fetch_add(1, Ordering::Relaxed);
        // In an order of their own.
        let after = |step: u64| millis(1 + (n * 7_919 + step * 31) % 97);
        let mut tasks = tasks.lock().expect("no test panics under it");
        match method {
            "tools/list" => vec![(millis(0), json!({"tools": [tool("w")]}))],
            "tools/call" => begin(&mut tasks, params, n, after),
            "tasks/get" => {
                let id = params["taskId"].as_str().expect("an id");
                vec![(after(0), state(id, tasks.get(id).cloned().flatten()))]
            }
            "tasks/update" => {
                let id = params["taskId"].as_str().expect("an id");
                let told = params["inputResponses"]["k"].clone();
                let before = tasks.insert(id.to_owned(), Some(told));
                assert_eq!(before, Some(None), "{id} is told once");
                vec![(after(0), json!({"resultType": "complete"}))]
            }
            _ => Vec::new(),
        }
    })
}

fn begin(
    tasks: &mut HashMap<String, Option<Value>>,
    params: &Value,
    n: u64,
    after: impl Fn(u64) -> Duration,
) -> Vec<(Duration, Value)> {
    let name = params["arguments"]["name"].as_str().expect("a name");
    let way = params["arguments"]["way"].as_str().expect("a way");
    let told = &params["inputResponses"]["k"];
    let done = |told: &Value| json!({"content": [{"type": "text", "text": told.to_string()}]});
    let progress = json!({"method": "notifications/progress", "params": {
        "progressToken": params["_meta"]["progressToken"], "progress": 1, "message": name}});
    let mut answers = vec![(millis(0), progress)];
    let question = match way {
        "form in the answer" => Some(form(name)),
        "prompt in the answer" => Some(prompt(name)),
        "roots in the answer" => Some(json!({"method": "roots/list"})),
        _ => None,
    };
    match (way, question) {
        (_, Some(question)) if told.is_null() => {
            let asks = json!({"resultType": "input_required", "requestState": name,
                "inputRequests": {"k": question}});
            answers.push((after(1), asks));
        }
        (_, Some(_)) => {
            assert_eq!(params["requestState"], name, "echoed exactly");
            answers.push((after(1), done(told)));
        }
        ("form of a task" | "form about a task", None) => {
            tasks.insert(
                name.to_owned(),
                (way == "form about a task").then(|| json!("no")),
            );
            let mut begun = state(name, None);
            begun["resultType"] = json!("task");
            begun["status"] = json!("working");
            answers.push((millis(0), begun));
            if way == "form about a task" {
                let mut ask = form(name);
                ask["id"] = json!(format!("ask {name}"));
                ask["params"]["_meta"] =
                    json!({"io.modelcontextprotocol/related-task": {"taskId": name}});
                answers.push((millis(20), ask));
            }
        }
        _ => {
            let mut ask = match way {
                "form" => form(name),
                "prompt" => prompt(name),
                _ => json!({"method": "roots/list"}),
            };
            ask["id"] = json!(format!("ask {name} {n}"));
            answers.push((after(1), ask));
            answers.push((after(2), done(&json!("nobody"))));
        }
    }
    answers
}

/// How a task is that was told this, if it was told something.
fn state(id: &str, told: Option<Value>) -> Value {
    let mut task = json!({"taskId": id, "createdAt": "", "lastUpdatedAt": "", "ttlMs": null,
        "pollIntervalMs": 100});
    match told {
        None => {
            task["status"] = json!("input_required");
            task["inputRequests"] = json!({"k": form(id)});
        }
        Some(told) => {
            task["status"] = json!("completed");
            let text = json!({"type": "text", "text": told.to_string()});
            task["result"] = json!({"content": [text]});
        }
    }
    task
}

/// What a call gave, and what was told of its progress.
type Outcome = (
    String,
    &'static str,
    Result<CallToolResult, Failure>,
    Vec<Progress>,
);

async fn call(lease: &Lease, user: &str, n: u64) -> Outcome {
    let ways = WAYS.len() as u64;
    let way = WAYS[usize::try_from(n * 7 % ways).expect("small")];
    let name = format!("{user}/{n}");
    let arguments = json!({"name": name, "way": way});
    let arguments = arguments.as_object().expect("an object").clone();
    sleep(millis(n * 31 % 1_009)).await;
    let (call, mut stream) = lease.tool("w").with_arguments(arguments).with_progress();
    let outcome = lease.clone().oneshot(call).await;
    let mut told = Vec::new();
    while let Some(progress) = stream.next().await {
        told.push(progress);
    }
    (name, way, outcome, told)
}

#[tokio::test(start_paused = true)]
async fn k08_no_question_and_no_progress_reaches_the_wrong_session() {
    let script = curious();
    let settings = PoolSettings::default().with_roots([Root::new("file:///work")]);
    let pool = Pool::with_connector(settings, Scripted(script.clone()));
    let pool = pool.expect("sensible settings");
    let users = [User::new("one"), User::new("other")];
    let sessions = users
        .each_ref()
        .map(|user| pool.session(user.name()).with_handler(user.clone()));
    let config = server();
    let leases = join_all(sessions.iter().map(|session| session.acquire(&config))).await;
    let leases: Vec<_> = leases
        .into_iter()
        .map(|lease| lease.expect("it starts"))
        .collect();

    let calls = (0..CALLS).map(|n| {
        let whose = usize::from(n % 3 == 0);
        call(&leases[whose], users[whose].name(), n)
    });
    let outcomes = join_all(calls).await;

    assert_eq!(script.received("initialize").len(), 1, "it is shared");
    for (name, way, outcome, told) in &outcomes {
        let user = name.split('/').next().expect("a user");
        let answer = outcome
            .as_ref()
            .unwrap_or_else(|e| panic!("{name}, {way}: {e}"));
        let text = &answer.content[0].as_text().expect("a text").text;
        match *way {
            "form in the answer" | "prompt in the answer" | "form of a task" => {
                let said = format!("{user} says yes to {name}");
                assert!(text.contains(&said), "{name}, {way}: {text}");
            }
            "roots in the answer" => assert!(text.contains("file:///work"), "{text}"),
            _ => {}
        }
        assert!(!told.is_empty(), "{name}, {way}");
        for progress in told {
            assert_eq!(progress.message.as_deref(), Some(&**name), "{way}");
        }
    }
    for user in &users {
        let asked = user.asked();
        assert!(asked.len() > 100, "{}", asked.len());
        for (asking, question) in asked {
            assert_eq!(&*asking.session, user.name());
            assert!(
                question.starts_with(&format!("{}/", user.name())),
                "{question}"
            );
        }
    }
    assert_each_is_answered_once(&script, &outcomes);
}

/// Of what the server asked by itself nothing is left unanswered.
fn assert_each_is_answered_once(script: &Script, outcomes: &[Outcome]) {
    let replies = script.replies();
    let mut ids = BTreeSet::new();
    for reply in &replies {
        let id = reply["id"].as_str().expect("ours are texts").to_owned();
        let name = id.split(' ').nth(1).expect("a name").to_owned();
        let (_, way, ..) = outcomes
            .iter()
            .find(|(call, ..)| *call == name)
            .expect("a call");
        match *way {
            "form" | "prompt" => assert_eq!(reply["error"]["code"], -32601, "{reply}"),
            "roots" => assert!(reply["result"]["roots"].is_array(), "{reply}"),
            // Its call may have ended in the same moment.
            _ => assert!(
                reply["result"]["action"] == "accept" || reply["error"].is_object(),
                "{reply}"
            ),
        }
        assert!(ids.insert(id.clone()), "{id} is answered twice");
    }
    let asked = outcomes
        .iter()
        .filter(|(_, way, ..)| matches!(*way, "form" | "prompt" | "roots" | "form about a task"));
    assert_eq!(ids.len(), asked.count(), "one is left unanswered");
    let accepted = replies.iter().filter(|r| r["result"]["action"] == "accept");
    assert!(accepted.count() > 50, "questions about tasks come through");
}

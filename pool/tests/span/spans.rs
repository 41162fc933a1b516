//! One span for each request.

use std::{collections::BTreeMap, time::Duration};

use rmcp::model::{GetPromptRequestParams, ReadResourceRequestParams};
use steadfast_classify::Call as _;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::{
    server::{SECRET, call, lease},
    trace::{ended, listen},
};

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_one_span_under_the_names_that_opentelemetry_has() {
    listen();
    let (_pool, lease) = lease("names").await;

    lease.clone().oneshot(call(&lease, "works")).await.unwrap();

    let want = [
        ("name", "tools/call"),
        ("otel.name", "tools/call works"),
        ("otel.kind", "client"),
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "works"),
        ("network.transport", "pipe"),
        ("steadfast.server", "names"),
    ];
    let want = want.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(ended("names"), [BTreeMap::from(want)]);
}

#[tokio::test(start_paused = true)]
async fn how_a_call_ended_is_on_its_span() {
    listen();
    let (_pool, lease) = lease("ends").await;
    for (tool, want) in [
        ("fails", [Some("tool_error"), None, None, None]),
        (
            "refuses",
            [Some("-32603"), Some("-32603"), Some("answered"), None],
        ),
        ("breaks", [Some("unknown"), None, Some("unknown"), None]),
        // Sent, and not waited for.
        (
            "hangs",
            [Some("cancelled"), None, Some("cancelled"), Some("read")],
        ),
        (
            "queued",
            [Some("cancelled"), None, Some("cancelled"), Some("connect")],
        ),
    ] {
        let answer = lease.clone().oneshot(call(&lease, tool));
        let _ = timeout(Duration::from_secs(1), answer).await;

        let spans = ended("ends");
        let span = spans.last().expect("there is one");
        assert_eq!(span["gen_ai.tool.name"], tool);
        assert_eq!(span["otel.status_code"], "ERROR", "{tool}");
        let names = [
            "error.type",
            "rpc.response.status_code",
            "steadfast.class",
            "steadfast.phase",
        ];
        let got = names.map(|name| span.get(name).map(String::as_str));
        assert_eq!(got, want, "{tool}");
    }
    assert_eq!(ended("ends").len(), 5, "one for each");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_span_with_its_number() {
    listen();
    let (_pool, lease) = lease("attempts").await;

    for attempt in 1..=2 {
        let mut call = call(&lease, "breaks");
        call.context_mut().expect("it has one").set_attempt(attempt);
        let _ = lease.clone().oneshot(call).await;
    }

    let numbers: Vec<_> = ended("attempts")
        .iter()
        .map(|span| span["steadfast.attempt"].clone())
        .collect();
    assert_eq!(numbers, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_prompt_is_named_by_it_and_one_for_a_resource_is_not() {
    listen();
    let (_pool, lease) = lease("others").await;

    let prompt = GetPromptRequestParams::new("greet");
    lease.get_prompt(prompt).await.unwrap();
    let resource = ReadResourceRequestParams::new(format!("file:///{SECRET}"));
    lease.read_resource(resource).await.unwrap();

    let names: Vec<_> = ended("others")
        .iter()
        .map(|span| {
            let get = |name| span.get(name).cloned();
            let both = (get("otel.name"), get("gen_ai.prompt.name"));
            assert_eq!(get("gen_ai.operation.name"), None, "that is for tools");
            both
        })
        .collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        names,
        [
            (some("prompts/get greet"), some("greet")),
            (some("resources/read"), None),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn each_question_about_a_task_has_a_span_beside_the_calls_own() {
    listen();
    let (_pool, lease) = lease("tasks").await;

    lease.clone().oneshot(call(&lease, "begins")).await.unwrap();

    let spans = ended("tasks");
    let names: Vec<_> = spans.iter().map(|span| &*span["otel.name"]).collect();
    assert_eq!(names, ["tasks/get", "tools/call begins"]);
    let well = spans.iter().all(|span| !span.contains_key("error.type"));
    assert!(well, "{spans:?}");
}

#[tokio::test(start_paused = true)]
async fn neither_arguments_nor_results_nor_the_servers_words_are_on_a_span() {
    listen();
    let (_pool, lease) = lease("secrets").await;

    for tool in ["works", "begins", "fails", "refuses"] {
        let _ = lease.clone().oneshot(call(&lease, tool)).await;
    }
    let prompt = GetPromptRequestParams::new("greet");
    lease.get_prompt(prompt).await.unwrap();
    let resource = ReadResourceRequestParams::new(format!("file:///{SECRET}"));
    lease.read_resource(resource).await.unwrap();

    let spans = ended("secrets");
    assert_eq!(spans.len(), 7);
    let printed = format!("{spans:?}");
    assert!(!printed.contains(SECRET), "{printed}");
}

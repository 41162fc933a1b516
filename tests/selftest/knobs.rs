//! How knobs are given.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_tests::probe::{CallKnobs, KNOBS_ENV, Knobs, Later, StartKnobs};

use crate::driver::{Client, Files, ms};

#[test]
fn an_unknown_knob_is_named_with_those_that_exist() {
    for (text, unknown, allowed) in [
        (r#"{"legder": "x"}"#, "`legder`", "`ledger`"),
        (r#"{"start": {"dely_ms": 1}}"#, "`dely_ms`", "`delay_ms`"),
        (
            r#"{"call": {"progress": {"each": 1}}}"#,
            "`each`",
            "`every_ms`",
        ),
        (r#"{"call": {"on_cancel": "sulk"}}"#, "`sulk`", "`ignore`"),
        (
            r#"{"list": {"changed": {"nmes": []}}}"#,
            "`nmes`",
            "`names`",
        ),
    ] {
        let error = Knobs::from_json(text).unwrap_err().to_string();

        assert!(error.contains(unknown), "{text}: {error}");
        assert!(error.contains(allowed), "{text}: {error}");
    }
}

#[test]
fn later_knobs_need_a_state_file() {
    let error = Knobs::from_json(r#"{"later": {"after_starts": 1}}"#).unwrap_err();

    assert_eq!(error.to_string(), "knob `later` needs knob `state`");
}

#[test]
fn a_healthy_probe_has_no_knobs_in_its_json() {
    assert_eq!(Knobs::default().to_json(), json!({}));
    assert_eq!(Knobs::from_json("{}").unwrap(), Knobs::default());
}

#[test]
fn an_entry_carries_its_knobs_in_the_environment() {
    let knobs = Knobs {
        ledger: Some("/tmp/ledger".into()),
        start: StartKnobs {
            strict: true,
            ..StartKnobs::default()
        },
        ..Knobs::default()
    };

    let entry = knobs.server_json(Path::new("/bin/probe"));

    assert_eq!(entry["command"], "/bin/probe");
    assert_eq!(entry["args"], json!(["--probe"]));
    let text = entry["env"][KNOBS_ENV].as_str().unwrap();
    assert_eq!(Knobs::from_json(text).unwrap(), knobs);
    let small = json!({ "ledger": "/tmp/ledger", "start": { "strict": true } });
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), small);
}

#[tokio::test(start_paused = true)]
async fn arguments_override_the_tool_and_the_tool_all_calls() {
    let echo = |echo: &str, tag: &str| CallKnobs {
        echo: Some(json!(echo)),
        tag: Some(tag.to_owned()),
        ..CallKnobs::default()
    };
    let mut knobs = Knobs {
        call: echo("of all", "all"),
        ..Knobs::default()
    };
    knobs.tools.insert("r".to_owned(), echo("of r", "r"));
    let (mut client, _server) = Client::ready(knobs).await;

    for (tool, arguments, want) in [
        ("w", json!({}), json!(["of all", "all"])),
        ("r", json!({}), json!(["of r", "r"])),
        ("r", json!({ "echo": 7 }), json!([7, "r"])),
        (
            "w",
            json!({ "echo": null, "tag": "own" }),
            json!([null, "own"]),
        ),
    ] {
        let answer = client.call(tool, arguments.clone()).await;

        let result = &answer["result"]["structuredContent"];
        assert_eq!(json!([result["echo"], result["tag"]]), want, "{arguments}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_argument_is_an_error_that_executes_nothing() {
    let files = Files::new();
    let (mut client, _server) = Client::ready(files.knobs()).await;

    let answer = client.call("w", json!({ "dely_ms": 5 })).await;

    assert_eq!(answer["error"]["code"], -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`dely_ms`"), "{message}");
    assert!(message.contains("`delay_ms`"), "{message}");
    assert!(!files.path("ledger").exists() || crate::logs::ledger(&files).is_empty());
}

#[tokio::test(start_paused = true)]
async fn later_knobs_hold_from_their_start_on() {
    let files = Files::new();
    let late = |delay_ms, after_starts, knobs| Knobs {
        start: StartKnobs {
            delay_ms,
            ..StartKnobs::default()
        },
        later: Some(Box::new(Later {
            after_starts,
            knobs,
        })),
        ..files.knobs()
    };
    let knobs = late(4_000, 2, late(1_000, 3, Knobs::default()));

    let mut took = Vec::new();
    for _ in 0..5 {
        let before = tokio::time::Instant::now();
        let (mut client, _server) = Client::ready(knobs.clone()).await;
        took.push(before.elapsed());
        client.call("w", json!({})).await;
    }

    assert_eq!(took, [ms(4_000), ms(4_000), ms(1_000), ms(0), ms(0)]);
    // The logs of the first knobs are kept by the later ones.
    assert_eq!(crate::logs::ledger(&files).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn faults_with_times_end_after_so_many_calls_of_a_tag() {
    let fails = |answer: Value| answer["result"]["isError"] == json!(true);
    let files = Files::new();
    let faulty = |tag| json!({ "tag": tag, "times": 2, "is_error": "no", "echo": tag });

    // Counted over two processes when there is a state file.
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (mut client, _server) = Client::ready(files.knobs()).await;
        for tag in ["a", "b", "a"] {
            let answer = client.call("w", faulty(tag)).await;
            assert_eq!(answer["result"]["structuredContent"]["echo"], tag);
            seen.push(fails(answer));
        }
    }
    assert_eq!(seen, [true, true, true, false, true, false]);

    // Without one, in this process only.
    let mut seen = Vec::new();
    for _ in 0..2 {
        let (mut client, _server) = Client::ready(Knobs::default()).await;
        for _ in 0..3 {
            seen.push(fails(client.call("w", faulty("a")).await));
        }
    }
    assert_eq!(seen, [true, true, false, true, true, false]);
}

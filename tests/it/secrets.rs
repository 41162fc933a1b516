//! No secret of a user, and nothing of a call's arguments or results, in anything printed.

use std::{error::Error, fmt::Debug};

use serde_json::{Value, json};
use steadfast::{
    Class, ConfigFile, Failure, Lease, Limits, Pool, ServerConfig,
    classify::mcp::server_failure,
    pool::Key,
    rmcp::model::{ErrorCode, ErrorData},
};
use steadfast_tests::probe::{HttpProbe, Knobs};
use tokio::{sync::broadcast::Receiver, time::sleep};

use crate::{
    ALONE,
    listen::Ears,
    support::{Agent, Outcome, Stage, kill_unseen, ms, object, quick, secs},
};

/// In each secret and in nothing else.
const CANARY: &str = "CANARY-5b1d";

/// All that a user may print.
#[derive(Default)]
struct Printed {
    text: String,
    classes: Vec<Class>,
}

#[tokio::test]
async fn k03_no_canary_in_anything_a_pool_prints_logs_or_counts_stdio() {
    let _alone = ALONE.lock().await;
    let ears = Ears::open();
    ears.clear();
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let mut events = pool.events();
    let mut printed = Printed::default();

    life(&stage, &pool, &mut printed).await;
    broken_starts(&stage, &pool, &mut printed).await;
    over_http(&pool, &mut printed).await;
    closed_in_a_call(&stage, &pool, &mut printed).await;
    printed.failure(&overloaded());
    printed.pool(&pool);
    let report = pool.drain_all(secs(10)).await;
    printed.show(&report);
    printed.events(&mut events);
    stage.ended(pool).await;

    for class in [
        Class::NotSent,
        Class::Timeout,
        Class::Unknown,
        Class::Answered,
        Class::Rejected,
        Class::Overloaded,
        Class::Cancelled,
    ] {
        assert!(
            printed.classes.contains(&class),
            "no {class:?} was provoked"
        );
    }
    let logs = ears.filtered.take();
    for (what, text, proof) in [
        ("printed", &printed.text, "entryCount"),
        ("logged", &logs, "lost a connection"),
        #[cfg(feature = "metrics")]
        ("counted", &ears.numbers.take(), "steadfast.pool.losses"),
    ] {
        assert!(text.contains(proof), "nothing was {what}");
        let lines = text.lines().filter(|line| line.contains(CANARY));
        let lines: Vec<_> = lines.collect();
        assert!(lines.is_empty(), "{what}: {lines:#?}");
    }
    let all = ears.all.take();
    let ours = all.lines().filter(|line| line.contains(CANARY));
    let ours: Vec<_> = ours.filter(|line| is_ours(line)).collect();
    assert!(ours.is_empty(), "logged: {ours:#?}");
    // Without the filter, the library below logs whole messages: what is looked for was there.
    assert!(all.contains(CANARY), "no secret was on its way at all");
}

/// The second word is the target.
fn is_ours(line: &str) -> bool {
    let target = line.split(' ').nth(1);
    target.is_some_and(|target| target.starts_with("steadfast"))
}

/// Calls that go well and calls that go wrong, a crash, a restart.
async fn life(stage: &Stage, pool: &Pool, printed: &mut Printed) {
    let config = program(stage, &json!({}), "exec \"$0\" --probe");
    printed.config(&config);
    let session = pool.session("a");
    let lease = session.acquire(&config).await.unwrap();
    let agent = Agent::new(lease.clone(), quick().without_breaker());
    printed.show(&session);
    printed.show(&lease);
    for fault in [
        json!({}),
        json!({"is_error": "no stock"}),
        json!({"rpc_error": -32603, "rpc_message": "broken"}),
        json!({"rpc_error": -32602, "rpc_message": "wrong"}),
        json!({"stall": true}),
        json!({"raw": format!("{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":\"{CANARY}\"}}")}),
        json!({"raw": format!("{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{{\"content\":\"{CANARY}\"}}}}")}),
        json!({"raw": format!("{{\"{CANARY}\": no json {{id}}")}),
        json!({"raw": format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{CANARY}\",\"result\":{{}}}}")}),
        json!({"exit_after": 3}),
        json!({"exit_before": 4}),
    ] {
        let call = secret_call(&lease, fault);
        printed.show(&call);
        printed.outcome(&agent.send(call).await);
    }
    let guarded = Agent::new(lease.clone(), quick());
    for _ in 0..6 {
        let call = secret_call(&lease, json!({"exit_after": 3}));
        printed.outcome(&guarded.send(call).await);
    }
    printed.outcome(&agent.send(secret_call(&lease, json!({}))).await);
    kill_unseen(*stage.started().last().unwrap());
    printed.outcome(&agent.send(secret_call(&lease, json!({}))).await);
    for restart in pool.restart("probe", None).await {
        printed.show(&restart);
        assert!(restart.restarted);
    }
    let answer = agent.send(lease.tool("env")).await;
    let sees = format!("{:?}", answer.as_ref().unwrap().value);
    assert!(sees.contains(CANARY), "the server itself must get it");
    printed.outcome(
        &agent
            .send(
                lease
                    .tool("hidden")
                    .with_arguments(object(json!({"a": CANARY}))),
            )
            .await,
    );
    printed.pool(pool);
    session.close();
    printed.outcome(&agent.send(secret_call(&lease, json!({}))).await);
}

/// Servers that cannot be had, for each reason.
async fn broken_starts(stage: &Stage, pool: &Pool, printed: &mut Printed) {
    let file = format!(
        r#"{{"mcpServers": {{
            "http": {{"httpUrl": "https://u:{CANARY}@127.0.0.1:9/{CANARY}?key={CANARY}",
                "headers": {{"Authorization": "Bearer {CANARY}"}},
                "oauth": {{"clientId": "{CANARY}", "clientSecret": "{CANARY}",
                    "tokenUrl": "https://127.0.0.1:9/?{CANARY}"}}}},
            "socket": {{"url": "wss://127.0.0.1:9/?key={CANARY}", "headers": {{"X": "{CANARY}"}}}},
            "absent": {{"command": "/nonexistent/program", "args": ["{CANARY}"],
                "env": {{"TOKEN": "{CANARY}"}}}},
            "homeless": {{"command": "sh", "args": ["{CANARY}"], "cwd": "/nonexistent"}},
            "wrong": {{"command": "sh", "args": ["{CANARY}"], "env": {{"A=B": "{CANARY}"}}}}
        }}}}"#
    );
    let file = ConfigFile::parse(&file);
    printed.show(&file);
    for error in file.errors() {
        printed.error(error);
    }
    let mut configs = file.servers().to_vec();
    for (start, script) in [
        (json!({"exit_on_initialize": 3}), "exec \"$0\" --probe"),
        (json!({"rpc_error": -32603}), "exec \"$0\" --probe"),
        (json!({"never": true}), "exec \"$0\" --probe"),
        (json!({}), "exit 3"),
        (json!({}), "echo no protocol; sleep 0.1; exit 3"),
    ] {
        configs.push(program(stage, &json!({"start": start}), script));
    }
    let session = pool.session("b");
    for config in &configs {
        printed.config(config);
        let failure = session.acquire(config).await.unwrap_err();
        printed.failure(&failure);
        let lease = session.lease(config).unwrap();
        let agent = Agent::new(lease.clone(), quick());
        printed.outcome(&agent.send(secret_call(&lease, json!({}))).await);
        printed.pool(pool);
    }
}

/// A session that is closed while its call runs.
async fn closed_in_a_call(stage: &Stage, pool: &Pool, printed: &mut Printed) {
    let session = pool.session("c");
    let config = program(stage, &json!({}), "exec \"$0\" --probe");
    let lease = session.acquire(&config).await.unwrap();
    let agent = Agent::new(lease.clone(), quick());
    let mut call = secret_call(&lease, json!({"stall": true}));
    call = call.with_limits(Limits::new().with_read(secs(10)));
    let running = agent.send(call);
    let close = async {
        while pool.snapshot().servers["probe"]
            .entry_summary
            .iter()
            .all(|entry| entry.in_flight == 0)
        {
            sleep(ms(5)).await;
        }
        session.close();
    };
    let (outcome, ()) = tokio::join!(running, close);
    printed.outcome(&outcome);
}

/// A server over HTTP that refuses its calls: 429, 401, 500, and half an answer. Where HTTP
/// is not built in, what is said of that.
async fn over_http(pool: &Pool, printed: &mut Printed) {
    let fault = |status: Option<u16>, body: &str| {
        json!({"on": ["tools/call"], "times": 1, "status": status, "body": body,
            "headers": {"Retry-After": "1", "WWW-Authenticate": format!("Bearer {CANARY}")}})
    };
    let faults = [
        // A server's message is quoted: it is for whoever reads the error.
        fault(Some(429), "slow down"),
        fault(Some(401), "who are you"),
        fault(Some(500), "broken"),
        fault(
            None,
            &format!("{{\"jsonrpc\": \"2.0\", \"id\": {{id}}, \"{CANARY}"),
        ),
    ];
    let knobs = json!({"http": {"faults": faults}}).to_string();
    let probe = HttpProbe::start(Knobs::from_json(&knobs).unwrap())
        .await
        .unwrap();
    let file = json!({"mcpServers": {"remote": {
        "httpUrl": format!("{}?key={CANARY}", probe.url()),
        "headers": {"Authorization": format!("Bearer {CANARY}")},
    }}});
    let config = ConfigFile::parse(&file.to_string())
        .into_servers()
        .unwrap()
        .remove(0);
    printed.config(&config);
    let session = pool.session("h");
    let lease = session.lease(&config).unwrap();
    let agent = Agent::new(lease.clone(), quick().without_breaker());
    for _ in 0..5 {
        printed.outcome(&agent.send(secret_call(&lease, json!({}))).await);
    }
    printed.pool(pool);
}

/// What a server says that has too much to do, if its code for that is known.
fn overloaded() -> Failure {
    let data = json!({"detail": CANARY});
    let refusal = ErrorData::new(ErrorCode(-32050), "busy", Some(data));
    let failure = server_failure(refusal, &[-32050]);
    assert_eq!(failure.class(), Class::Overloaded);
    failure
}

/// A server whose arguments and environment hold secrets.
fn program(stage: &Stage, knobs: &Value, script: &str) -> ServerConfig {
    let probe = env!("CARGO_BIN_EXE_probe");
    let fields = json!({
        "command": "sh",
        "args": ["-c", script, probe, CANARY],
        "env": {"API_TOKEN": CANARY},
        "excludeTools": ["hidden"],
        "discoveryTimeoutMs": 1000,
    });
    stage.server_with(knobs, fields)
}

/// A call with a secret in its arguments, which its result repeats.
fn secret_call(lease: &Lease, mut fault: Value) -> steadfast::ToolCall {
    fault["echo"] = json!({"password": CANARY});
    fault["tag"] = json!(CANARY);
    let limits = Limits::new().with_read(ms(500));
    let call = lease.tool("w").with_arguments(object(fault));
    call.with_limits(limits)
}

// === impl Printed ===

impl Printed {
    fn show(&mut self, value: impl Debug) {
        self.text += &format!("{value:?}\n{value:#?}\n");
    }

    fn error(&mut self, error: &(dyn Error + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            self.text += &format!("{error}\n{error:?}\n{error:#?}\n");
            next = error.source();
        }
    }

    fn failure(&mut self, failure: &Failure) {
        self.classes.push(failure.class());
        self.error(failure);
        self.show(failure.origin());
    }

    /// A result is its caller's own, and its `Debug` is the protocol's type; the rest is ours.
    fn outcome(&mut self, outcome: &Outcome) {
        match outcome {
            Ok(answer) => {
                self.show(answer.source);
                self.show(&answer.cause);
            }
            Err(failure) => self.failure(failure),
        }
    }

    fn config(&mut self, config: &ServerConfig) {
        self.show(config);
        self.show(config.endpoint());
        self.show(Key::new(config, Some(CANARY)));
    }

    fn pool(&mut self, pool: &Pool) {
        let snapshot = pool.snapshot();
        self.show(pool);
        self.show(&snapshot);
        self.show(pool.slots());
        self.text += &serde_json::to_string(&snapshot).unwrap();
        self.text.push('\n');
    }

    fn events(&mut self, events: &mut Receiver<steadfast::pool::PoolEvent>) {
        let mut count = 0;
        while let Ok(event) = events.try_recv() {
            self.show(event);
            count += 1;
        }
        assert!(count > 10, "only {count} events");
    }
}

//! How long requests take, as numbers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use rmcp::model::GetPromptRequestParams;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::server::{call, lease};

/// What was recorded under `mcp.client.operation.duration`, by its labels.
#[derive(Clone, Default)]
struct Durations(Arc<Mutex<Vec<(String, f64)>>>);

struct Series {
    labels: String,
    durations: Durations,
}

#[tokio::test(start_paused = true)]
async fn a_request_is_timed_from_when_it_was_sent_and_told_by_names_the_server_has() {
    let durations = Durations::default();
    let _guard = metrics::set_default_local_recorder(&durations);
    let (_pool, lease) = lease("numbers").await;

    for tool in ["works", "made-up", "fails", "refuses", "hangs", "queued"] {
        let answer = lease.clone().oneshot(call(&lease, tool));
        let _ = timeout(Duration::from_secs(2), answer).await;
    }
    for prompt in ["greet", "made-up"] {
        let params = GetPromptRequestParams::new(prompt);
        lease.get_prompt(params).await.expect("it answers");
    }

    let of_tool = |rest: &str, took| {
        let labels = "server=numbers mcp.method.name=tools/call network.transport=pipe \
                      gen_ai.operation.name=execute_tool";
        (format!("{labels}{rest}"), took)
    };
    let of_prompt = |rest: &str| {
        let labels = "server=numbers mcp.method.name=prompts/get network.transport=pipe";
        (format!("{labels}{rest}"), 0.0)
    };
    let want = [
        of_tool(" gen_ai.tool.name=works", 0.0),
        of_tool("", 0.0),
        of_tool(" gen_ai.tool.name=fails error.type=tool_error", 0.0),
        of_tool(" gen_ai.tool.name=refuses error.type=-32603", 0.0),
        of_tool(" gen_ai.tool.name=hangs error.type=cancelled", 2.0),
        // The queued one was never sent.
        of_prompt(" gen_ai.prompt.name=greet"),
        of_prompt(""),
    ];
    assert_eq!(*durations.0.lock().expect("no test panics in it"), want);
}

// === impl Durations ===

impl Recorder for Durations {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() != "mcp.client.operation.duration" {
            return Histogram::noop();
        }
        let labels: Vec<_> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        Histogram::from_arc(Arc::new(Series {
            labels: labels.join(" "),
            durations: self.clone(),
        }))
    }
}

// === impl Series ===

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        let mut durations = self.durations.0.lock().expect("no test panics in it");
        durations.push((self.labels.clone(), value));
    }
}

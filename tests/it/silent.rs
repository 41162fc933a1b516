//! A tool that never answers, through the whole stack, with real limits and with none.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt as _, pending, ready};
use serde_json::json;
use steadfast::{
    Class, Failure, Phase, Pool, PoolSettings, ServerConfig, Stack, ToolCall,
    classify::Flight,
    fallback,
    pool::{Closed, Connect, Host, Link, Listing, Lost},
    rmcp::model::{CallToolResponse, Tool},
    timeout,
};
use tokio::time::Instant;

use crate::support::{Agent, SOON, Stage, ms, quick};

/// Takes each call and never answers one; it lives in memory, for a clock that is paused.
#[derive(Debug)]
struct Silent;

#[tokio::test(start_paused = true)]
async fn b04_with_no_limit_configured_anywhere_a_call_ends_at_the_documented_default() {
    let pool = Pool::with_connector(PoolSettings::default(), Silent).unwrap();
    let session = pool.session("a");
    let config = ServerConfig::stdio("library", "silent").build().unwrap();
    let lease = session.acquire(&config).await.unwrap();
    let stack = Stack::tools().with_last_good(fallback::Settings::new().with_explicit(true));
    let agent = Agent::new(lease, stack.unwrap());
    let begun = Instant::now();

    let failure = agent.call("fetch", json!({})).await.unwrap_err();

    assert_eq!(begun.elapsed().as_secs(), 60);
    assert_eq!(
        failure.to_string(),
        "\"fetch\" on \"library\": timed out (read) after 60.0s: its read limit of 60s passed; \
         it may have run, check before repeating it"
    );
}

#[tokio::test]
async fn b04_a_tool_that_never_answers_ends_and_the_error_says_where_and_when_stdio() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&json!({}))).await.unwrap();
    let read = quick().with_timeout(timeout::Settings::new().with_read(ms(400)));
    let short = timeout::Settings::new()
        .with_read(ms(500))
        .with_connect(ms(500));
    let total = quick().with_timeout(short).with_total(ms(1500));
    for (stack, arguments, phase, limit) in [
        (
            read,
            json!({"tag": "read", "stall": true}),
            Phase::Read,
            ms(400),
        ),
        // A sign of life now and then keeps the read limit away, and not the deadline.
        (
            total,
            json!({"tag": "total", "stall": true, "progress": {"every_ms": 100}}),
            Phase::Total,
            ms(1500),
        ),
    ] {
        let agent = Agent::new(lease.clone(), stack);
        let begun = Instant::now();

        let failure = agent.call("w", arguments).await.unwrap_err();

        let took = begun.elapsed();
        assert!(took >= limit && took < limit + SOON, "{took:?}");
        assert_says_where_and_when(&failure, phase, limit);
    }
    assert_eq!(stage.executed("read") + stage.executed("total"), 2);
    assert_eq!(stage.started().len(), 1, "the connection is none the worse");
    drop((lease, session));
    stage.end(pool).await;
}

fn assert_says_where_and_when(failure: &Failure, phase: Phase, limit: Duration) {
    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(phase), "{failure}");
    assert!(failure.elapsed().unwrap() >= limit - ms(1), "{failure:?}");
    let told = failure.to_string();
    for part in ["\"w\"", "\"probe\"", phase.as_str(), " after "] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

// === impl Silent ===

impl Connect for Silent {
    fn connect(
        &self,
        _: &ServerConfig,
        _: Instant,
        _: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        ready(Ok(Arc::new(Self) as Arc<dyn Link>)).boxed()
    }
}

impl Link for Silent {
    fn call(
        self: Arc<Self>,
        _: &ToolCall,
        flight: Flight,
    ) -> BoxFuture<'static, Result<CallToolResponse, Failure>> {
        assert!(flight.sending());
        pending().boxed()
    }

    fn list_tools(self: Arc<Self>) -> BoxFuture<'static, Result<Listing<Tool>, Failure>> {
        let tools = vec![Tool::new("fetch", "", serde_json::Map::new())];
        ready(Ok(tools.into())).boxed()
    }

    fn lost(self: Arc<Self>) -> BoxFuture<'static, Lost> {
        pending().boxed()
    }

    fn close(self: Arc<Self>, _: Duration) -> BoxFuture<'static, Closed> {
        ready(Closed::clean()).boxed()
    }
}

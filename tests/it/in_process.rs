//! Servers that live in this program.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, Tool,
    },
    service::RequestContext,
};
use serde_json::json;
use steadfast::{Class, Phase, Pool, ServerConfig, pool::Status, timeout};
use tokio::{io::DuplexStream, time::Instant};

use crate::{
    over::{Over, cancels, limits, losses, noise, over, tasks},
    support::{Agent, Stage, ms, pool_settings, quick, secs, text, until},
};

over! {
    Over::InProcess;
    a01_every_call_in_flight_ends_when_its_server_goes_in_process
        => losses::a01_every_call_in_flight_ends_when_its_server_goes;
    b01_starting_and_calling_have_limits_of_their_own_in_process
        => limits::b01_starting_and_calling_have_limits_of_their_own;
    b06_a_call_that_times_out_leaves_its_connection_alone_in_process
        => limits::b06_a_call_that_times_out_leaves_its_connection_alone;
    b07_an_answer_that_comes_too_late_disturbs_no_other_call_in_process
        => limits::b07_an_answer_that_comes_too_late_disturbs_no_other_call;
    c01_a_call_that_reports_progress_is_not_cut_off_in_process
        => limits::c01_a_call_that_reports_progress_is_not_cut_off;
    c03_progress_extends_a_call_unless_that_is_switched_off_in_process
        => limits::c03_progress_extends_a_call_unless_that_is_switched_off;
    c04_progress_under_a_foreign_token_extends_no_call_in_process
        => limits::c04_progress_under_a_foreign_token_extends_no_call;
    d01_a_loss_after_execution_is_never_repeated_in_process
        => losses::d01_a_loss_after_execution_is_never_repeated;
    d02_what_is_harmless_is_repeated_on_a_new_connection_in_process
        => losses::d02_what_is_harmless_is_repeated_on_a_new_connection;
    d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection_in_process
        => losses::d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection;
    d08_a_call_behind_a_stuck_connection_is_sent_once_on_the_next_in_process
        => losses::d08_a_call_behind_a_stuck_connection_is_sent_once_on_the_next;
    a_call_that_cannot_be_written_in_time_was_not_sent_in_process
        => losses::a_call_that_cannot_be_written_in_time_was_not_sent;
    m01_lines_that_are_no_message_are_skipped_and_not_answered_in_process
        => noise::m01_what_is_no_message_is_skipped_and_not_answered;
    n01_a_call_that_is_given_up_is_cancelled_once_in_process
        => cancels::n01_a_call_that_is_given_up_is_cancelled_once;
    n01_each_of_fifty_calls_dropped_at_once_is_cancelled_in_process
        => cancels::n01_each_of_fifty_calls_dropped_at_once_is_cancelled;
    n01_a_call_dropped_before_it_was_sent_leaves_no_trace_in_process
        => cancels::n01_a_call_dropped_before_it_was_sent_leaves_no_trace;
    k06_every_caller_gets_its_own_answer_in_process
        => cancels::k06_every_caller_gets_its_own_answer;
    o01_a_tool_runs_as_a_task_where_it_has_to_in_process
        => tasks::o01_a_tool_runs_as_a_task_where_it_has_to;
    a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution_in_process
        => tasks::a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution;
    a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel_in_process
        => tasks::a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel;
}

#[tokio::test]
async fn a04_a_server_that_ended_while_idle_is_replaced_for_the_next_call_in_process() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let config = Over::InProcess.server(&stage, &json!({})).await;
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());
    let ends = json!({"echo": "last", "exit_answered": 0});
    let answer = agent.call("w", ends).await.unwrap();
    assert_eq!(text(&answer.value), "last");
    assert!(until(|| status(&pool) == Status::Idle).await);
    let why = pool.snapshot().servers["probe"].entry_summary[0]
        .last_error
        .clone();
    let why = why.unwrap();
    assert!(why.contains("its handler returned"), "{why}");

    let answer = agent.call("w", json!({"tag": "next"})).await.unwrap();

    assert!(answer.is_live());
    assert_eq!(
        (stage.executed("next"), stage.received("initialize")),
        (1, 2)
    );
    stage.end(pool).await;
}

#[tokio::test]
async fn a_panic_in_a_tool_that_is_swallowed_ends_by_the_read_limit_in_process() {
    let pool = Pool::new(pool_settings()).unwrap();
    let session = pool.session("a");
    let ran = Arc::new(AtomicUsize::new(0));
    let read = timeout::Settings::new().with_read(ms(500));
    let agent = Agent::new(
        session.acquire(&hosted(&ran)).await.unwrap(),
        quick().with_timeout(read),
    );

    let begun = Instant::now();
    let failure = agent.call("panics", json!({})).await.unwrap_err();

    assert_eq!(failure.class(), Class::Timeout, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Read), "{failure}");
    assert!(failure.may_have_run(), "{failure}");
    assert!(begun.elapsed() < secs(3), "{:?}", begun.elapsed());
    assert_eq!(ran.load(Ordering::SeqCst), 1, "it was not repeated");
    // It takes neither its server nor anybody's next call with it.
    let answer = agent.call("fine", json!({})).await.unwrap();
    assert_eq!(text(&answer.value), "fine");
    assert_eq!(pool.drain_all(secs(10)).await.forced, []);
}

#[tokio::test]
async fn a_handler_that_panics_ends_its_calls_at_once_in_process() {
    let pool = Pool::new(pool_settings()).unwrap();
    let session = pool.session("a");
    let ran = Arc::new(AtomicUsize::new(0));
    let server = Tools(Arc::clone(&ran));
    let config = ServerConfig::in_process("tools", move |connection| {
        let server = server.clone();
        async move {
            let serving = server.clone().serve(connection).await.unwrap();
            // It goes down as soon as a tool has run.
            assert!(until(|| server.0.load(Ordering::SeqCst) > 0).await);
            let _serving = serving;
            panic!("a fault of the test");
        }
    });
    let agent = Agent::new(
        session.acquire(&config.build().unwrap()).await.unwrap(),
        quick(),
    );

    let failure = agent.call("stalls", json!({})).await.unwrap_err();

    assert_eq!(failure.class(), Class::Unknown, "{failure}");
    let told = failure.to_string();
    assert!(told.contains("its handler panicked"), "{told}");
    assert!(!told.contains("a fault of the test"), "{told}");
    assert_eq!(ran.load(Ordering::SeqCst), 1, "it was not repeated");
    pool.drain_all(secs(10)).await;
}

#[tokio::test]
async fn a_handler_that_serves_nobody_was_sent_nothing_in_process() {
    let pool = Pool::new(pool_settings()).unwrap();
    let session = pool.session("a");
    for (how, config) in [
        (
            "its handler panicked",
            ServerConfig::in_process("panics", async |_| panic!("a fault of the test")),
        ),
        (
            "its handler returned",
            ServerConfig::in_process("returns", async |_| {}),
        ),
    ] {
        let failure = session.acquire(&config.build().unwrap()).await.unwrap_err();

        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
        let told = failure.to_string();
        assert!(told.contains(how), "{told}");
    }
    assert_eq!(pool.drain_all(secs(10)).await.forced, []);
}

#[tokio::test]
async fn a_handler_that_does_not_return_is_aborted_in_process() {
    let pool = Pool::new(pool_settings()).unwrap();
    let session = pool.session("a");
    let alive = Arc::new(());
    let witness = Arc::downgrade(&alive);
    let config = ServerConfig::in_process("stubborn", move |connection| {
        let (alive, server) = (Arc::clone(&alive), Tools::default());
        async move {
            let _serving = server.serve(connection).await;
            let _alive = alive;
            pending().await
        }
    });
    let config = config.build().unwrap();
    let lease = session.acquire(&config).await.unwrap();
    drop(config);
    let serving = witness.strong_count();

    let begun = Instant::now();
    let report = pool.drain_all(secs(5)).await;

    assert!(begun.elapsed() < secs(5), "{:?}", begun.elapsed());
    assert_eq!(report.forced.len(), 1, "{report:?}");
    assert_eq!(report.forced[0].survivors, Some(0), "{report:?}");
    assert_eq!(witness.strong_count(), serving - 1, "its task lives on");
    drop(lease);
}

#[tokio::test]
async fn each_session_has_a_connection_of_its_own_in_process() {
    let pool = Pool::new(pool_settings()).unwrap();
    let (a, b) = (pool.session("a"), pool.session("b"));
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let config = ServerConfig::in_process("tools", move |connection| {
        counted.fetch_add(1, Ordering::SeqCst);
        serve(Tools::default(), connection)
    });
    let config = config.build().unwrap();

    let first = a.acquire(&config).await.unwrap();
    let again = a.acquire(&config.clone()).await.unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 1, "one session has one");
    let other = b.acquire(&config).await.unwrap();

    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert_eq!(pool.snapshot().subprocess_count, 0);
    drop((first, again));
    a.close();
    let answer = Agent::new(other, quick()).call("fine", json!({})).await;
    assert_eq!(text(&answer.unwrap().value), "fine");
    assert_eq!(pool.drain_all(secs(10)).await.forced, []);
}

/// A server of `rmcp`; it counts what runs.
#[derive(Clone, Default)]
struct Tools(Arc<AtomicUsize>);

// === impl Tools ===

impl ServerHandler for Tools {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ["fine", "panics", "stalls"].map(|name| Tool::new(name, name, Arc::default()));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match &*params.name {
            "fine" => Ok(CallToolResult::success(vec![ContentBlock::text("fine")]).into()),
            "stalls" => pending().await,
            _ => panic!("a fault of the test"),
        }
    }

    fn get_info(&self) -> rmcp::model::ServerConfig {
        let tools = rmcp::model::ServerCapabilities::builder().enable_tools();
        rmcp::model::ServerConfig::new(tools.build())
    }
}

fn hosted(ran: &Arc<AtomicUsize>) -> ServerConfig {
    let server = Tools(Arc::clone(ran));
    let config =
        ServerConfig::in_process("tools", move |connection| serve(server.clone(), connection));
    config.build().unwrap()
}

async fn serve(server: Tools, connection: DuplexStream) {
    if let Ok(serving) = server.serve(connection).await {
        let _ = serving.waiting().await;
    }
}

fn status(pool: &Pool) -> Status {
    pool.snapshot().servers["probe"].entry_summary[0].status
}

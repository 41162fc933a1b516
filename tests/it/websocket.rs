//! Servers that are reached by a WebSocket.

use serde_json::json;
use steadfast::{Pool, ServerConfig, pool::Status};

use crate::{
    over::{Listening, Over, cancels, limits, listen, losses, noise, over, tasks},
    support::{Agent, Stage, quick, until},
};

over! {
    Over::WebSocket;
    a01_every_call_in_flight_ends_when_its_server_goes_websocket
        => losses::a01_every_call_in_flight_ends_when_its_server_goes;
    b01_starting_and_calling_have_limits_of_their_own_websocket
        => limits::b01_starting_and_calling_have_limits_of_their_own;
    b06_a_call_that_times_out_leaves_its_connection_alone_websocket
        => limits::b06_a_call_that_times_out_leaves_its_connection_alone;
    b07_an_answer_that_comes_too_late_disturbs_no_other_call_websocket
        => limits::b07_an_answer_that_comes_too_late_disturbs_no_other_call;
    c01_a_call_that_reports_progress_is_not_cut_off_websocket
        => limits::c01_a_call_that_reports_progress_is_not_cut_off;
    c03_progress_extends_a_call_unless_that_is_switched_off_websocket
        => limits::c03_progress_extends_a_call_unless_that_is_switched_off;
    c04_progress_under_a_foreign_token_extends_no_call_websocket
        => limits::c04_progress_under_a_foreign_token_extends_no_call;
    d01_a_reset_after_execution_is_never_repeated_websocket
        => losses::d01_a_loss_after_execution_is_never_repeated;
    d02_what_is_harmless_is_repeated_on_a_new_connection_websocket
        => losses::d02_what_is_harmless_is_repeated_on_a_new_connection;
    d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection_websocket
        => losses::d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection;
    d08_a_call_behind_a_stuck_connection_is_sent_once_on_the_next_websocket
        => losses::d08_a_call_behind_a_stuck_connection_is_sent_once_on_the_next;
    a_call_that_cannot_be_written_in_time_was_not_sent_websocket
        => losses::a_call_that_cannot_be_written_in_time_was_not_sent;
    m01_frames_that_are_no_message_are_skipped_and_not_answered_websocket
        => noise::m01_what_is_no_message_is_skipped_and_not_answered;
    n01_a_call_that_is_given_up_is_cancelled_once_websocket
        => cancels::n01_a_call_that_is_given_up_is_cancelled_once;
    n01_each_of_fifty_calls_dropped_at_once_is_cancelled_websocket
        => cancels::n01_each_of_fifty_calls_dropped_at_once_is_cancelled;
    n01_a_call_dropped_before_it_was_sent_leaves_no_trace_websocket
        => cancels::n01_a_call_dropped_before_it_was_sent_leaves_no_trace;
    k06_every_caller_gets_its_own_answer_websocket
        => cancels::k06_every_caller_gets_its_own_answer;
    o01_a_tool_runs_as_a_task_where_it_has_to_websocket
        => tasks::o01_a_tool_runs_as_a_task_where_it_has_to;
    a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution_websocket
        => tasks::a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution;
    a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel_websocket
        => tasks::a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel;
}

#[tokio::test]
async fn a04_a_server_killed_while_idle_is_replaced_for_the_next_call_websocket() {
    let stage = Stage::enter().await;
    let pool = stage.pool();
    let session = pool.session("a");
    let probe = listen(&stage, &json!({}));
    let config = config(&probe);
    let agent = Agent::new(session.acquire(&config).await.unwrap(), quick());

    for (tag, noticed) in [("at once", false), ("later", true)] {
        if noticed {
            probe.kill();
            assert!(until(|| status(&pool) == Status::Idle).await);
        }
        // Nothing in this runtime runs until it is dead and another listens in its place.
        probe.start_again();

        let answer = agent.call("w", json!({"tag": tag})).await.unwrap();

        assert!(answer.is_live());
        assert_eq!(stage.executed(tag), 1);
    }
    assert_eq!(stage.received("initialize"), 3);
    stage.end(pool).await;
}

pub(crate) fn config(probe: &Listening) -> ServerConfig {
    let config = ServerConfig::websocket("probe", probe.url());
    config.trust(true).build().unwrap()
}

pub(crate) fn status(pool: &Pool) -> Status {
    pool.snapshot().servers["probe"].entry_summary[0].status
}

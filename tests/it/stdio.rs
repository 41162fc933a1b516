//! The cases that are the same over every transport, with a server that is a process.

use crate::over::{Over, cancels, limits, losses, noise, over, tasks};

over! {
    Over::Stdio;
    a01_every_call_in_flight_ends_when_its_server_dies_stdio
        => losses::a01_every_call_in_flight_ends_when_its_server_goes;
    b01_starting_and_calling_have_limits_of_their_own_stdio
        => limits::b01_starting_and_calling_have_limits_of_their_own;
    b06_a_call_that_times_out_leaves_its_connection_alone_stdio
        => limits::b06_a_call_that_times_out_leaves_its_connection_alone;
    b07_an_answer_that_comes_too_late_disturbs_no_other_call_stdio
        => limits::b07_an_answer_that_comes_too_late_disturbs_no_other_call;
    c01_a_call_that_reports_progress_is_not_cut_off_stdio
        => limits::c01_a_call_that_reports_progress_is_not_cut_off;
    c03_progress_extends_a_call_unless_that_is_switched_off_stdio
        => limits::c03_progress_extends_a_call_unless_that_is_switched_off;
    c04_progress_under_a_foreign_token_extends_no_call_stdio
        => limits::c04_progress_under_a_foreign_token_extends_no_call;
    d01_a_loss_after_execution_is_never_repeated_stdio
        => losses::d01_a_loss_after_execution_is_never_repeated;
    d02_what_is_harmless_is_repeated_on_a_new_connection_stdio
        => losses::d02_what_is_harmless_is_repeated_on_a_new_connection;
    d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection_stdio
        => losses::d08_a_call_that_waits_for_its_turn_is_sent_once_on_the_next_connection;
    a_call_that_cannot_be_written_in_time_was_not_sent_stdio
        => losses::a_call_that_cannot_be_written_in_time_was_not_sent;
    m01_lines_that_are_no_message_are_skipped_and_not_answered_stdio
        => noise::m01_what_is_no_message_is_skipped_and_not_answered;
    n01_a_call_that_is_given_up_is_cancelled_once_stdio
        => cancels::n01_a_call_that_is_given_up_is_cancelled_once;
    n01_each_of_fifty_calls_dropped_at_once_is_cancelled_stdio
        => cancels::n01_each_of_fifty_calls_dropped_at_once_is_cancelled;
    n01_a_call_dropped_before_it_was_sent_leaves_no_trace_stdio
        => cancels::n01_a_call_dropped_before_it_was_sent_leaves_no_trace;
    o01_a_tool_runs_as_a_task_where_it_has_to_stdio
        => tasks::o01_a_tool_runs_as_a_task_where_it_has_to;
    a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution_stdio
        => tasks::a_task_survives_a_restart_a_reconnect_and_a_lost_poll_with_one_execution;
    a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel_stdio
        => tasks::a_caller_that_leaves_at_any_point_leaves_no_poll_and_one_cancel;
}

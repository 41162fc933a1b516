//! The cases that are the same over every transport, over streamable HTTP.

use crate::over::{Over, cancels, limits, losses, over, tasks};

over! {
    Over::Http;
    b01_starting_and_calling_have_limits_of_their_own_http
        => limits::b01_starting_and_calling_have_limits_of_their_own;
    b06_a_call_that_times_out_leaves_its_connection_alone_http
        => limits::b06_a_call_that_times_out_leaves_its_connection_alone;
    b07_an_answer_that_comes_too_late_disturbs_no_other_call_http
        => limits::b07_an_answer_that_comes_too_late_disturbs_no_other_call;
    c01_a_call_that_reports_progress_is_not_cut_off_http
        => limits::c01_a_call_that_reports_progress_is_not_cut_off;
    c03_progress_extends_a_call_unless_that_is_switched_off_http
        => limits::c03_progress_extends_a_call_unless_that_is_switched_off;
    c04_progress_under_a_foreign_token_extends_no_call_http
        => limits::c04_progress_under_a_foreign_token_extends_no_call;
    d02_a_reset_after_execution_is_repeated_where_that_is_harmless_http
        => losses::d02_what_is_harmless_is_repeated_on_a_new_connection;
    k06_every_caller_gets_its_own_answer_http
        => cancels::k06_every_caller_gets_its_own_answer;
    o01_a_tool_runs_as_a_task_where_it_has_to_http
        => tasks::o01_a_tool_runs_as_a_task_where_it_has_to;
}

over! {
    Over::HttpEvents;
    b06_a_call_that_times_out_leaves_its_connection_alone_http_events
        => limits::b06_a_call_that_times_out_leaves_its_connection_alone;
    b07_an_answer_that_comes_too_late_disturbs_no_other_call_http_events
        => limits::b07_an_answer_that_comes_too_late_disturbs_no_other_call;
    c01_a_call_that_reports_progress_is_not_cut_off_http_events
        => limits::c01_a_call_that_reports_progress_is_not_cut_off;
    c03_progress_extends_a_call_unless_that_is_switched_off_http_events
        => limits::c03_progress_extends_a_call_unless_that_is_switched_off;
    c04_progress_under_a_foreign_token_extends_no_call_http_events
        => limits::c04_progress_under_a_foreign_token_extends_no_call;
}

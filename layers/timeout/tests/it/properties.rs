//! The end of an attempt against a plain account of what its limits mean.

use proptest::{collection::vec, option, prelude::*};
use steadfast_classify::{Class, Limits, Phase};
use steadfast_timeout::Settings;

use crate::wire::{Req, Script, ms, outcome};

type End = (Result<&'static str, (Class, Phase)>, u64);

/// What happens, and what is allowed, in milliseconds.
#[derive(Clone, Debug)]
struct Plan {
    connect: u64,
    read: u64,
    attempt: Option<u64>,
    deadline: Option<u64>,
    reset_on_progress: bool,
    script: Script,
}

proptest! {
    #[test]
    fn an_attempt_ends_exactly_when_its_first_limit_runs_out(plan in plans()) {
        let got = run(&plan);

        prop_assert_eq!(got, account(&plan));
    }
}

/// Each kind of moment has a remainder of its own modulo 8, so that no two of them
/// fall together and the order within a moment does not matter.
fn plans() -> impl Strategy<Value = Plan> {
    let at = |remainder: u64| (0..100_u64).prop_map(move |n| n * 8 + remainder);
    let gap = || (1..40_u64).prop_map(|n| n * 8);
    let limits = (
        at(8),
        at(4),
        option::weighted(0.3, at(8)),
        option::weighted(0.3, at(8)),
        any::<bool>(),
    );
    let events = (
        option::of(at(8)),
        option::weighted(0.9, at(1)),
        vec(gap(), 0..10),
        option::weighted(0.8, gap()),
    );
    (limits, events).prop_map(|(limits, (starting, sent, gaps, answer))| {
        let first = sent.unwrap_or(1) + 1;
        let progress = moments(first, &gaps);
        let last = progress.last().copied().unwrap_or(first);
        Plan {
            connect: limits.0,
            read: limits.1,
            attempt: limits.2,
            deadline: limits.3,
            reset_on_progress: limits.4,
            script: Script {
                ignores_flights: false,
                starting,
                sent,
                progress,
                answer: answer.map(|gap| last + 1 + gap),
            },
        }
    })
}

/// The moments that lie these gaps apart, the first of them after `start`.
fn moments(start: u64, gaps: &[u64]) -> Vec<u64> {
    let mut at = start;
    let next = |gap| {
        at += gap;
        at
    };
    gaps.iter().map(next).collect()
}

/// What the layer makes of it.
fn run(plan: &Plan) -> End {
    let mut limits = Limits::new()
        .with_connect(ms(plan.connect))
        .with_read(ms(plan.read));
    limits.attempt = plan.attempt.map(ms);
    let settings = Settings::new().with_reset_on_progress(plan.reset_on_progress);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut request = Req::tracked().with_limits(limits);
        if let Some(deadline) = plan.deadline {
            request = request.with_deadline(ms(deadline));
        }
        outcome(settings, plan.script.clone(), request).await
    })
}

/// What it should make of it.
fn account(plan: &Plan) -> End {
    let connect = plan.connect.max(plan.script.starting.unwrap_or(0));
    let sent = plan.script.sent.filter(|at| *at < connect);
    let (own, phase) = match sent {
        Some(sent) => (read_end(plan, sent), Phase::Read),
        None => (connect, Phase::Connect),
    };
    let (end, phase) = [
        Some((own, phase)),
        plan.deadline.map(|at| (at, Phase::Total)),
        plan.attempt.map(|at| (at, Phase::Attempt)),
    ]
    .into_iter()
    .flatten()
    .min_by_key(|(at, _)| *at)
    .unwrap();

    let sent = sent.filter(|at| *at < end);
    let answered = plan.script.answer.filter(|at| *at < end);
    match (sent, answered) {
        (Some(_), Some(at)) => (Ok("pong"), at),
        (Some(_), None) => (Err((Class::Timeout, phase)), end),
        (None, _) => (Err((Class::NotSent, phase)), end),
    }
}

/// When the read limit of a call runs out that was sent at `sent`.
fn read_end(plan: &Plan, sent: u64) -> u64 {
    let mut end = sent + plan.read;
    for at in &plan.script.progress {
        if plan.reset_on_progress && *at < end {
            end = at + plan.read;
        }
    }
    end
}

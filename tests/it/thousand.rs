//! A thousand calls on a server that crashes at any moment.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use fastrand::Rng;
use futures::{StreamExt as _, stream};
use rustix::process::Signal;
use serde_json::{Value, json};
use steadfast::{
    Class, Pool,
    circuit_breaker::{self, OpenFor},
    pool::{Respawn, process::Grace},
    retry::{self, Backoff, Jitter},
    stack::{ToolStack, by_server},
    timeout,
};
use tokio::time::{sleep, timeout as within};

use crate::{
    ALONE,
    support::{Agent, Outcome, Stage, ms, pool_settings, quick, secs, signal, until},
    usage::{children, descriptors},
};

const CALLS: usize = 1000;
const AT_ONCE: usize = 8;

/// Fixes the run; without it each run is another one, and prints what to set.
const SEED: &str = "STEADFAST_SEED";

/// One call and what its server does to it.
struct Planned {
    tool: &'static str,
    tag: String,
    fault: &'static str,
    arguments: Value,
}

/// How it ended.
struct Ended {
    planned: Planned,
    outcome: Outcome,
    comes_back: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_survive_crashes_and_none_is_made_twice() {
    let _alone = ALONE.lock().await;
    let seed = match std::env::var(SEED) {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => fastrand::u64(..),
    };
    println!("{SEED}={seed}");
    let before = descriptors();
    let stage = Stage::enter().await;
    let pool = Pool::new(settings()).unwrap();
    let session = pool.session("a");
    let lease = session.acquire(&stage.server(&servers())).await.unwrap();
    let agent = Agent::new(lease, stack());
    let mut random = Rng::with_seed(seed);
    let planned: Vec<_> = (0..CALLS).map(|number| plan(number, &mut random)).collect();

    let killer = tokio::spawn(kill_at_random(pool.clone(), random));
    let calls = stream::iter(planned).map(|planned| run(&agent, &stage, planned));
    let ended: Vec<_> = calls.buffer_unordered(AT_ONCE).collect().await;
    killer.abort();
    // The handle of the pool that it held goes with it.
    let _ = killer.await;

    judge(&stage, &ended);
    let starts = stage.started().len();
    tell(&ended, starts);
    assert!(starts > 20, "only {starts} starts");
    drop((agent, session));
    stage.end(pool).await;
    assert!(until(|| children().is_empty()).await, "{:?}", children());
    // What the runtime itself opens with the first process may stay.
    assert!(
        until(|| descriptors() <= before + 2).await,
        "{before}, {}",
        descriptors()
    );
}

/// Every call against the server's own books.
fn judge(stage: &Stage, ended: &[Ended]) {
    let mut executed = HashMap::new();
    for execution in stage.ledger().entries().unwrap() {
        *executed.entry(execution.tag.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(ended.len(), CALLS, "a call did not end");
    for Ended {
        planned, outcome, ..
    } in ended
    {
        let Planned {
            tool, tag, fault, ..
        } = planned;
        let executed = executed.get(tag).copied().unwrap_or(0);
        let about = format!("{tool} {tag} ({fault}) ran {executed} times: {outcome:?}");
        if *tool == "w" {
            assert!(executed <= 1, "{about}");
        }
        match outcome {
            Ok(answer) => {
                assert!(answer.is_live(), "{about}");
                assert!(executed >= 1, "{about}");
                let structured = answer.value.structured_content.as_ref().unwrap();
                assert_eq!(structured["tag"], json!(tag), "{about}");
            }
            Err(failure) if !failure.may_have_run() => assert_eq!(executed, 0, "{about}"),
            Err(_) => {}
        }
    }
}

fn tell(ended: &[Ended], starts: usize) {
    let mut table = BTreeMap::new();
    for Ended {
        planned, outcome, ..
    } in ended
    {
        let outcome = outcome
            .as_ref()
            .map_or_else(|f| f.class().as_str(), |_| "live");
        *table.entry((planned.tool, outcome)).or_insert(0) += 1;
    }
    let back: u32 = ended.iter().map(|ended| ended.comes_back).sum();
    println!("{starts} starts, {back} times somebody came back, outcomes: {table:?}");
    let live = ended.iter().filter(|ended| ended.outcome.is_ok()).count();
    assert!(live > CALLS / 2, "only {live} calls came through");
    let unknown = |ended: &&Ended| {
        ended
            .outcome
            .as_ref()
            .is_err_and(|failure| failure.class() == Class::Unknown)
    };
    assert!(ended.iter().any(|e| unknown(&e)), "no crash hit a call");
}

/// Makes the call, and makes it again for as long as that is harmless by what it is told.
async fn run(agent: &Agent, stage: &Stage, planned: Planned) -> Ended {
    let (mut comes_back, mut may_have_run) = (0, false);
    let calls = async {
        loop {
            let outcome = agent.call(planned.tool, planned.arguments.clone()).await;
            let Err(failure) = &outcome else {
                return outcome;
            };
            may_have_run |= failure.may_have_run();
            if !may_have_run {
                assert_eq!(stage.executed(&planned.tag), 0, "{} {failure}", planned.tag);
            } else if planned.tool == "w" {
                return outcome;
            }
            comes_back += 1;
            // What it is told while a probe is out is the longest it can take.
            sleep(failure.retry_in().unwrap_or_default().min(ms(20))).await;
        }
    };
    let outcome = within(secs(60), calls).await;
    let outcome = outcome.unwrap_or_else(|_| panic!("{} never ends", planned.tag));
    Ended {
        planned,
        outcome,
        comes_back,
    }
}

fn plan(number: usize, random: &mut Rng) -> Planned {
    let tool = *random.choice(&["w", "w", "r", "i"]).unwrap();
    let tag = format!("{tool}{number}");
    let torn = "{\"jsonrpc\":\"2.0\",\"id\":{id},\"resu";
    let (fault, mut arguments) = match random.u32(0..100) {
        0 => ("exits before executing", json!({"exit_before": 1})),
        1 => ("exits after executing", json!({"exit_after": 137})),
        2 => (
            "exits within its answer",
            json!({"raw": torn, "no_newline": true, "exit_answered": 1}),
        ),
        3 => ("exits after its answer", json!({"exit_answered": 0})),
        4 => ("closes its output", json!({"close_stdout": true})),
        5..7 => (
            "reads nothing for a while",
            json!({"blocking": true, "delay_ms": 150}),
        ),
        7..40 => (
            "takes its time",
            json!({"delay_before_ms": 10, "delay_ms": 20}),
        ),
        _ => ("none", json!({"jitter_ms": 5})),
    };
    arguments["tag"] = json!(tag);
    // What may be repeated meets its fault once or twice, and then comes through.
    arguments["times"] = json!(random.u64(1..=2));
    Planned {
        tool,
        tag,
        fault,
        arguments,
    }
}

/// Kills the server from outside now and then.
async fn kill_at_random(pool: Pool, mut random: Rng) {
    loop {
        sleep(Duration::from_millis(random.u64(100..400))).await;
        let snapshot = pool.snapshot();
        let entries = snapshot
            .servers
            .values()
            .flat_map(|server| &server.entry_summary);
        for pid in entries.filter_map(|entry| entry.pid) {
            signal(pid, Signal::KILL);
        }
    }
}

/// Healthy at first and at last; in between each start of it closes its input, or stops
/// reading from it.
fn servers() -> Value {
    json!({"later": {"after_starts": 5, "knobs": {
        "wire": {"close_stdin_after": 60},
        "later": {"after_starts": 10, "knobs": {
            "wire": {"stop_reading_after": 60},
            "later": {"after_starts": 15, "knobs": {}},
        }},
    }}})
}

/// A server that is gone is tried again after 10 ms, for ever.
fn settings() -> steadfast::PoolSettings {
    pool_settings()
        .with_respawn_local(Respawn::new([ms(10)], ms(10)))
        .with_closing(Grace::new(ms(100), ms(100), secs(1)))
}

fn stack() -> ToolStack {
    let backoff = Backoff::new(ms(10), ms(20), Jitter::Additive(0.2)).unwrap();
    // A crash ends all calls at once; two of them in a row open the circuit.
    let circuit = circuit_breaker::Settings::new()
        .with_consecutive_failures(AT_ONCE as u32 + 2)
        .with_open_for(OpenFor::fixed(ms(10)));
    quick()
        .with_timeout(timeout::Settings::new().with_read(secs(2)))
        .with_total(secs(30))
        .with_retry(
            retry::Settings::new()
                .with_max_retries(10_000)
                .with_backoff(backoff),
        )
        .with_retry_budget(None)
        .with_breaker_per("servers", circuit, by_server as _)
}

//! Each transport × fault × effect: how the call ends, and how often it ran.

mod faults;

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use serde_json::json;
use steadfast::{
    Class, Failure, Lease, Pool, ServerConfig, Session,
    retry::{self, Backoff, Jitter},
    timeout,
};
use steadfast_tests::probe::{Cut, HttpProbe};
use tokio::time::{Instant, timeout as within};

use faults::{Fault, fault, faults};

use crate::{
    over::Over,
    place::remote,
    support::{Agent, Stage, ms, quick, secs, until},
};

/// How often a call is repeated at most.
const REPEATS: u32 = 2;

/// How long a call waits for its answer.
const READ: Duration = Duration::from_millis(300);

/// Whatever the fault: three times the limit, the pauses, and a busy machine.
const BOUND: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Stdio,
    InProcess,
    WebSocket,
    /// Answers are JSON.
    Http,
    /// Answers are events.
    HttpEvents,
    /// 2026-07-28, without sessions.
    HttpStateless,
}

/// What became of one fault, for one effect.
struct Cell {
    line: String,
    wrong: Option<String>,
}

/// One transport with its server.
struct Bench {
    transport: Transport,
    stage: Stage,
    pool: Pool,
    session: Session,
    /// Held all the time: what a tool does is known as long as there is a connection.
    lease: Lease,
    probe: Option<HttpProbe>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_in_time_and_no_order_runs_twice() {
    let transports = [
        Transport::Stdio,
        Transport::InProcess,
        Transport::WebSocket,
        Transport::Http,
        Transport::HttpEvents,
        Transport::HttpStateless,
    ];
    let tables = transports.map(|transport| tokio::spawn(table(transport)));
    println!(
        "{:<14} {:<30} {:<6} {:<10} {:>8} {:>10} {:>8}",
        "transport", "fault", "effect", "class", "attempts", "executions", "time"
    );
    let mut wrong = Vec::new();
    for table in tables {
        for cell in table.await.expect("no cell hangs or panics") {
            println!("{}", cell.line);
            wrong.extend(cell.wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// All cells of one transport.
async fn table(transport: Transport) -> Vec<Cell> {
    let bench = Bench::enter(transport).await;
    let mut cells = Vec::new();
    for fault in faults(transport) {
        for tool in ["w", "r", "i"] {
            cells.push(bench.cell(&fault, tool).await);
        }
    }
    for tool in ["w", "r", "i"] {
        cells.push(bench.out_of_reach(tool).await);
    }
    bench.end().await;
    cells
}

#[test]
fn every_transport_has_the_faults_that_all_can_have() {
    let names = |transport| -> BTreeSet<_> {
        let faults = faults(transport);
        faults.iter().map(|fault| fault.name).collect()
    };
    assert_eq!(names(Transport::Stdio), names(Transport::InProcess));
    assert_eq!(names(Transport::Stdio), names(Transport::WebSocket));
    assert!(names(Transport::Http).is_superset(&names(Transport::Stdio)));
    assert!(names(Transport::HttpEvents).is_superset(&names(Transport::Http)));
}

// === impl Transport ===

impl Transport {
    const fn is_http(self) -> bool {
        match self {
            Self::Http | Self::HttpEvents | Self::HttpStateless => true,
            Self::Stdio | Self::InProcess | Self::WebSocket => false,
        }
    }
}

// === impl Bench ===

impl Bench {
    async fn enter(transport: Transport) -> Self {
        let stage = Stage::enter().await;
        let pool = stage.pool();
        let knobs = match transport {
            Transport::HttpEvents => json!({"http": {"answers": "sse"}}),
            _ => json!({}),
        };
        let probe = match transport.is_http() {
            true => Some(HttpProbe::start(stage.knobs(&knobs)).await.expect("a port")),
            false => None,
        };
        let url = probe.as_ref().map(HttpProbe::url).unwrap_or_default();
        let config = match transport {
            Transport::Stdio => stage.server(&knobs),
            Transport::InProcess => Over::InProcess.server(&stage, &knobs).await,
            Transport::WebSocket => Over::WebSocket.server(&stage, &knobs).await,
            Transport::Http | Transport::HttpEvents => remote(&url, json!({})),
            Transport::HttpStateless => remote(&url, json!({"protocolVersion": "2026-07-28"})),
        };
        let session = pool.session("a");
        Self {
            lease: session.acquire(&config).await.expect("it is healthy"),
            session,
            transport,
            stage,
            pool,
            probe,
        }
    }

    async fn cell(&self, fault: &Fault, tool: &str) -> Cell {
        // What the last fault broke is mended before the next.
        let mended = Agent::new(self.lease.clone(), stack())
            .call("r", json!({}))
            .await;
        assert!(mended.is_ok(), "before {}: {mended:?}", fault.name);
        self.run(fault, tool, &self.lease, None).await
    }

    /// The cell of a server that is not there.
    async fn out_of_reach(&self, tool: &str) -> Cell {
        let fault = fault("cannot be reached", json!({}), Some(Class::NotSent), 0);
        let lease = |config| self.session.lease(config).expect("it is open");
        if let Some(probe) = &self.probe {
            probe.go_down(Cut::Close).await;
            let cell = self.run(&fault, tool, &self.lease, None).await;
            probe.come_back().await;
            return cell;
        }
        if self.transport == Transport::InProcess {
            let gone = ServerConfig::in_process("gone", async |connection| drop(connection));
            let gone = gone.trust(true).build().expect("a good configuration");
            return self.run(&fault, tool, &lease(&gone), None).await;
        }
        if self.transport == Transport::WebSocket {
            let nobody = ServerConfig::websocket("nobody", "ws://127.0.0.1:1/");
            let nobody = nobody.trust(true).build().expect("a good configuration");
            return self.run(&fault, tool, &lease(&nobody), None).await;
        }
        let missing = json!({"command": "/no/such/program"});
        let missing = self.stage.server_with(&json!({}), missing);
        // It will not be there a moment later: one attempt says all.
        self.run(&fault, tool, &lease(&missing), Some(1)).await
    }

    async fn run(&self, fault: &Fault, tool: &str, lease: &Lease, attempts: Option<u32>) -> Cell {
        let tag = format!("{} {tool}", fault.name);
        let mut call = fault.call.clone();
        call["tag"] = json!(tag);
        let agent = Agent::new(lease.clone(), stack());
        let begun = Instant::now();
        let outcome = within(BOUND, agent.call(tool, call)).await;
        let took = begun.elapsed();
        let outcome = outcome.unwrap_or_else(|_| panic!("{:?}: {tag} hangs", self.transport));

        let failure = outcome.as_ref().err();
        let class = failure.map(Failure::class);
        let made = failure.map_or(1, Failure::attempts);
        let want = attempts.unwrap_or_else(|| attempts_of(fault.class, tool != "w"));
        // A call may end before what it began has.
        let due = fault.executes * want as usize;
        until(|| self.stage.executed(&tag) >= due).await;
        let executed = self.stage.executed(&tag);
        let right = class == fault.class
            && made == want
            && executed == due
            && (tool != "w" || executed <= 1);
        Cell {
            line: format!(
                "{:<14} {:<30} {tool:<6} {:<10} {made:>8} {executed:>10} {:>6}ms",
                format!("{:?}", self.transport),
                fault.name,
                class.map_or("ok", Class::as_str),
                took.as_millis(),
            ),
            wrong: (!right).then(|| {
                format!(
                    "{:?} {tag}: want {:?} after {want} attempts with {} executions each: \
                     {failure:?}",
                    self.transport, fault.class, fault.executes
                )
            }),
        }
    }

    async fn end(self) {
        drop((self.lease, self.session));
        self.pool.drain_all(secs(10)).await;
        // Nor was any repeated after its call had ended.
        let mut orders = HashSet::new();
        for line in self.stage.ledger().entries().expect("a ledger") {
            let first = line.tool != "w" || orders.insert(line.tag.clone());
            assert!(first, "{:?}: {line:?} ran twice", self.transport);
        }
        self.stage.ended(self.pool).await;
    }
}

/// How often a call is made that always ends like this.
const fn attempts_of(class: Option<Class>, harmless: bool) -> u32 {
    match class {
        Some(Class::NotSent | Class::Overloaded) => 1 + REPEATS,
        Some(Class::Timeout | Class::Unknown) if harmless => 1 + REPEATS,
        _ => 1,
    }
}

fn stack() -> steadfast::stack::ToolStack {
    let pauses = Backoff::new(ms(20), ms(100), Jitter::Additive(0.2)).expect("in order");
    let retry = retry::Settings::new()
        .with_backoff(pauses)
        .with_max_retries(REPEATS);
    let limits = timeout::Settings::new()
        .with_connect(secs(3))
        .with_read(READ);
    // One fault after the other is what a circuit opens for.
    quick()
        .with_retry(retry)
        .with_timeout(limits)
        .without_breaker()
}

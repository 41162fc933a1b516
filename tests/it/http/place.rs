//! A stage with a server over HTTP on it.

use serde_json::{Value, json};
use steadfast::{
    ConfigFile, Pool, ServerConfig, Session,
    pool::{EntrySnapshot, PoolSettings},
    retry,
    stack::ToolStack,
};
use steadfast_tests::probe::{HttpFault, HttpProbe, HttpRequest};

use crate::support::{Agent, Stage, pool_settings, quick, secs, until};

/// A stage, a probe that serves HTTP in this process, a pool, and a session of it.
pub(crate) struct Place {
    pub(crate) stage: Stage,
    pub(crate) probe: HttpProbe,
    pub(crate) pool: Pool,
    pub(crate) session: Session,
}

// === impl Place ===

impl Place {
    /// With these HTTP knobs.
    pub(crate) async fn enter(http: Value) -> Self {
        Self::with(&json!({ "http": http }), pool_settings()).await
    }

    /// With all of these knobs, and a pool with these settings.
    pub(crate) async fn with(knobs: &Value, settings: PoolSettings) -> Self {
        let stage = Stage::enter().await;
        let probe = HttpProbe::start(stage.knobs(knobs)).await;
        let pool = Pool::new(settings).expect("good settings");
        Self {
            probe: probe.expect("a port"),
            session: pool.session("a"),
            stage,
            pool,
        }
    }

    pub(crate) fn config(&self, fields: Value) -> ServerConfig {
        remote(&self.probe.url(), fields)
    }

    /// An agent that is connected.
    pub(crate) async fn agent(&self, fields: Value) -> Agent {
        self.agent_with(fields, quick()).await
    }

    pub(crate) async fn agent_with(&self, fields: Value, stack: ToolStack) -> Agent {
        let lease = self.session.acquire(&self.config(fields)).await;
        Agent::new(lease.unwrap(), stack)
    }

    /// From now on requests have these faults.
    pub(crate) fn faults(&self, faults: Value) {
        let faults: Vec<HttpFault> = serde_json::from_value(faults).unwrap();
        self.probe.change(|knobs| knobs.faults = faults);
    }

    /// The requests that carried this method, in order.
    pub(crate) fn requests(&self, rpc: &str) -> Vec<HttpRequest> {
        let mut requests = self.probe.requests();
        requests.retain(|request| request.is(rpc));
        requests
    }

    pub(crate) fn entry(&self) -> EntrySnapshot {
        self.pool.snapshot().servers["probe"].entry_summary[0].clone()
    }

    /// Ends the pool. Nothing of it may be left, at the server neither.
    pub(crate) async fn end(self) {
        let Self {
            stage,
            probe,
            pool,
            session,
        } = self;
        let report = pool.drain_all(secs(10)).await;
        assert_eq!(report.forced, []);
        drop(session);
        assert!(
            until(|| probe.connections() == 0).await,
            "{} connections are left",
            probe.connections()
        );
        stage.ended(pool).await;
    }
}

/// The server at this address, with more fields in its entry. What its tools say of
/// themselves is believed.
pub(crate) fn remote(url: &str, fields: Value) -> ServerConfig {
    let mut entry = json!({ "url": url, "trust": true });
    if let (Value::Object(entry), Value::Object(fields)) = (&mut entry, fields) {
        entry.extend(fields);
    }
    let file = json!({ "mcpServers": { "probe": entry } });
    let servers = ConfigFile::parse(&file.to_string()).into_servers();
    servers.expect("a good entry").remove(0)
}

/// No call is repeated.
pub(crate) fn once() -> ToolStack {
    quick().with_retry(retry::Settings::new().with_max_retries(0))
}

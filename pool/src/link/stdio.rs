//! Servers that are programs, spoken to over their standard input and output.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use futures::future::{self, BoxFuture, FutureExt};
use rmcp::{
    ServiceExt as _,
    model::{ClientCapabilities, ClientConfig, Implementation},
    service::ClientInitializeError,
};
use secrecy::ExposeSecret;
use steadfast_classify::{Class, Failure, Phase, mcp::initialize_failure};
use tokio::time::{self, Instant};

use super::{
    Connect, Link, Lost,
    any::unsupported,
    held::{Held, Started, exited},
    mcp::{McpLink, agreed},
};
use crate::{
    Endpoint, Program, ServerConfig,
    process::{self, Grace, InheritedEnv, SpawnError, Spec, Watchdog},
    wire::{Framing, Wire},
};

/// The longest line of a server that is read; a longer one is skipped.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// How much of a server's standard error is kept.
const STDERR_LIMIT: usize = 8 * 1024;

/// How long a server that broke off its handshake may take to end, so that its exit
/// status can be told.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Starts servers that are programs.
///
/// Each gets a process group of its own and an environment of what is named in its
/// configuration and an allow-list of the host's, fixed when this is made. However it
/// ends, everything that it started ends with it; if the host itself is killed, a
/// watchdog sees to that.
#[derive(Clone, Debug)]
pub struct StdioConnect(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    env: InheritedEnv,
    watchdog: Watchdog,
    grace: Grace,
    client: Implementation,
    started: Started,
}

/// A handshake that failed, with what is known of the server.
#[derive(Debug)]
struct HandshakeFailed {
    cause: Failure,
    lost: Lost,
}

// === impl StdioConnect ===

impl StdioConnect {
    /// Starts servers with what they may inherit of the environment as it is now, and
    /// ends them within `grace`.
    #[must_use]
    pub fn new(grace: Grace) -> Self {
        Self(Arc::new(Shared {
            env: InheritedEnv::capture(),
            watchdog: Watchdog::new(),
            grace,
            client: Implementation::new("steadfast", env!("CARGO_PKG_VERSION")),
            started: Started::default(),
        }))
    }

    async fn start(self, spec: Spec, deadline: Instant) -> Result<Arc<dyn Link>, Failure> {
        let shared = &*self.0;
        let spawned =
            process::spawn(&spec, &shared.watchdog, STDERR_LIMIT).map_err(spawn_failure)?;
        // From here on a pool that is dropped finds it, and so does this future's own drop.
        let held = Held::new(spawned.process);
        let guard = KillOnDrop(&held);
        if !shared.started.remember(&held) {
            return Err(over());
        }
        let (wire, tasks, transport) =
            Wire::start(spawned.stdout, spawned.stdin, Framing::new(MAX_LINE));
        let client = ClientConfig::new(ClientCapabilities::default(), shared.client.clone());
        let started = Instant::now();
        match time::timeout_at(deadline, client.serve(transport)).await {
            Ok(Ok(running)) => {
                if let Err(failure) = agreed(&running) {
                    held.shutdown(tasks, shared.grace).await;
                    return Err(failure);
                }
                std::mem::forget(guard);
                let grace = shared.grace;
                Ok(McpLink::new(running, wire, tasks, Some(held), grace))
            }
            Ok(Err(error)) => {
                let failure = broken_off(error, &held).await;
                held.shutdown(tasks, shared.grace).await;
                Err(failure)
            }
            Err(_elapsed) => Err(timed_out(started.elapsed(), &held)),
        }
    }
}

impl Connect for StdioConnect {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        let Endpoint::Stdio(program) = config.endpoint() else {
            return future::err(unsupported(config.family())).boxed();
        };
        let spec = spec(program, &self.0.env);
        self.clone().start(spec, deadline).boxed()
    }

    fn kill_all(&self) {
        self.0.started.kill_all();
    }
}

/// Kills a server whose start is given up.
struct KillOnDrop<'a>(&'a Held);

// === impl KillOnDrop ===

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.0.kill();
    }
}

// === impl HandshakeFailed ===

impl fmt::Display for HandshakeFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lost)?;
        match self.cause.source() {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl Error for HandshakeFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

fn spec(program: &Program, env: &InheritedEnv) -> Spec {
    let args = program.args.iter().map(|arg| arg.expose_secret());
    let named = program
        .env
        .iter()
        .map(|(name, value)| (name.into(), value.expose_secret().into()));
    let spec = Spec::new(&program.command)
        .with_args(args)
        .with_env(env.with(named));
    match &program.cwd {
        Some(cwd) => spec.with_cwd(cwd),
        None => spec,
    }
}

fn spawn_failure(error: SpawnError) -> Failure {
    let permanent = error.is_permanent();
    let failure = Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_source(error);
    if permanent {
        failure.with_permanent()
    } else {
        failure
    }
}

fn over() -> Failure {
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_permanent()
        .with_source("everything that this connector started was killed")
}

/// A handshake that ended with an error: adds how the server ended, and its last words.
async fn broken_off(error: ClientInitializeError, process: &Held) -> Failure {
    let exit = time::timeout(LAST_WORDS, exited(Some(process))).await.ok();
    let reason = match exit {
        Some(_) => "the server ended before it was ready",
        None => "the handshake failed",
    };
    let lost = Lost::new(reason).with_process(exit, Some(process.stderr()));
    let cause = initialize_failure(error);
    cause.clone().with_source(HandshakeFailed { cause, lost })
}

/// A handshake that was not answered in time. What the server wrote may say why.
fn timed_out(elapsed: Duration, process: &Held) -> Failure {
    let lost =
        Lost::new("the server was not ready in time").with_process(None, Some(process.stderr()));
    Failure::new(Class::NotSent)
        .with_phase(Phase::Connect)
        .with_elapsed(elapsed)
        .with_source(lost)
}

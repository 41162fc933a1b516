//! Servers that are programs, spoken to over their standard input and output.

use std::sync::Arc;

use futures::future::{self, BoxFuture, FutureExt};
use secrecy::ExposeSecret;
use steadfast_classify::{Class, Failure, Phase};
use tokio::time::Instant;

use super::{
    Connect, Link,
    any::unsupported,
    handshake::{Terms, shake},
    held::{Held, Started},
    server::{KillOnDrop, Server},
};
use crate::{
    Endpoint, Host, Program, ServerConfig,
    process::{self, Grace, InheritedEnv, SpawnError, Spec, Watchdog},
    wire::{Framing, Wire},
};

/// The longest line of a server that is read; a longer one is skipped.
pub(super) const MAX_LINE: usize = 16 * 1024 * 1024;

/// How much of a server's standard error is kept.
const STDERR_LIMIT: usize = 8 * 1024;

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
    started: Started,
}

// === impl StdioConnect ===

impl StdioConnect {
    /// Starts servers with what they may inherit of the environment as it is now, and
    /// ends them within `grace`.
    #[must_use]
    pub fn new(grace: Grace) -> Self {
        Self::guarded_by(Watchdog::new(), grace)
    }

    fn guarded_by(watchdog: Watchdog, grace: Grace) -> Self {
        Self(Arc::new(Shared {
            env: InheritedEnv::capture(),
            watchdog,
            grace,
            started: Started::default(),
        }))
    }

    async fn start(self, spec: Spec, terms: Terms) -> Result<Arc<dyn Link>, Failure> {
        let shared = &*self.0;
        let spawned =
            process::spawn(&spec, &shared.watchdog, STDERR_LIMIT).map_err(spawn_failure)?;
        // From here on a pool that is dropped finds it, and so does this future's own drop.
        let held = Held::new(spawned.process);
        let server = Server::Process(held.clone());
        let mut guard = KillOnDrop::new(&server);
        if !shared.started.remember(&held) {
            return Err(over());
        }
        let carried = Wire::start(spawned.stdout, spawned.stdin, Framing::new(MAX_LINE));
        guard.disarm();
        shake(carried, server, &terms).await
    }
}

impl Connect for StdioConnect {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        let Endpoint::Stdio(program) = config.endpoint() else {
            return future::err(unsupported(config.family())).boxed();
        };
        let spec = spec(program, &self.0.env);
        let terms = Terms {
            host: host.clone(),
            version: config.protocol_version().cloned(),
            grace: self.0.grace,
            deadline,
        };
        self.clone().start(spec, terms).boxed()
    }

    fn kill_all(&self) {
        self.0.started.kill_all();
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

#[cfg(all(test, target_os = "linux"))]
mod tests;

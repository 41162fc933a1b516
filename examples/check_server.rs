//! Checks what becomes of calls to a real server that stalls, is killed, and comes back.
//!
//! ```text
//! cargo run --example check_server -- mcp.json SERVER TOOL '{"json":"arguments"}'
//! cargo run --features http --example check_server -- mcp.json SERVER TOOL '{}' COMMAND…
//! ```
//!
//! It lists the tools, calls one, stops the server in the middle of a second call, kills
//! it, and calls again. A server that is reached by an address is started, killed and
//! started again by COMMAND. The tool should do no harm: it is called three times.

use std::{
    error::Error,
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};

use steadfast::{
    Class, ConfigFile, Effect, Lease, Pool, PoolSettings, ServerConfig, Session, Stack, ToolCall,
    fallback, pool::Family, rmcp::model::JsonObject,
};
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, ServiceExt};

type BoxError = Box<dyn Error + Send + Sync>;

/// How long a server may take to be there.
const START: Duration = Duration::from_secs(30);

const MOMENT: Duration = Duration::from_millis(200);

/// Where the process to kill comes from.
enum Server {
    /// The pool started it.
    Pooled,
    /// This program did.
    Own { command: Vec<String>, child: Child },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("check_server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, name, tool, arguments, command @ ..] = args.as_slice() else {
        return Err("usage: check_server FILE SERVER TOOL ARGUMENTS [COMMAND…]".into());
    };
    let file = ConfigFile::load(file);
    for error in file.errors() {
        eprintln!("check_server: {error}");
    }
    let config = file
        .server(name)
        .ok_or("no such usable server in the file")?;
    if command.is_empty() && config.family() != Family::Stdio {
        return Err("a server that is reached by an address needs a COMMAND that starts it".into());
    }
    let arguments = serde_json::from_str(arguments)?;
    let pool = Pool::new(PoolSettings::default())?;
    let checked = check(&pool, config, tool, arguments, command).await;
    let report = pool.drain_all(Duration::from_secs(10)).await;
    println!(
        "drained: {} by themselves, {} by force",
        report.drained,
        report.forced.len()
    );
    checked
}

async fn check(
    pool: &Pool,
    config: &ServerConfig,
    tool: &str,
    arguments: JsonObject,
    command: &[String],
) -> Result<(), BoxError> {
    let mut server = Server::start(command)?;
    let session = pool.session("check");
    let lease = reach(&session, config).await?;
    println!("listed: {} tools", lease.tools().tools.len());
    // Believed to have side effects, whatever the server says: such a call is never repeated.
    let call = || {
        let call = lease.tool(tool).with_effect(Effect::NonIdempotent);
        call.with_arguments(arguments.clone())
    };
    answered(&lease, call()).await?;

    let pid = server.pid(pool)?;
    signal(pid, "STOP")?;
    let cut_off = tokio::spawn(lease.clone().oneshot(call()));
    // Long enough for it to be written to a server that does not read.
    sleep(Duration::from_millis(300)).await;
    signal(pid, "KILL")?;
    let killed = Instant::now();
    let outcome = timeout(START, cut_off)
        .await
        .map_err(|_| "the call hangs")??;
    let failure = outcome.err().ok_or("a dead server has answered")?;
    println!(
        "killed in mid-call, known after {:?}: {failure}",
        killed.elapsed()
    );
    if failure.class() != Class::Unknown || !failure.may_have_run() {
        return Err(format!("nobody can know whether it ran, and yet: {failure:?}").into());
    }

    server.restart()?;
    reach(&session, config).await?;
    answered(&lease, call()).await
}

/// A seat at the server once it is there.
async fn reach(session: &Session, config: &ServerConfig) -> Result<Lease, BoxError> {
    let until = Instant::now() + START;
    loop {
        match session.acquire(config).await {
            Ok(lease) => return Ok(lease),
            Err(failure) if failure.is_permanent() || Instant::now() > until => {
                return Err(failure.into());
            }
            Err(failure) => sleep(failure.retry_in().unwrap_or(MOMENT)).await,
        }
    }
}

/// Calls through the recommended stack; the answer has to come from the server itself. A
/// server that has just failed a few times is left alone for a while, so what was not sent
/// is tried again when the pool says so.
async fn answered(lease: &Lease, call: ToolCall) -> Result<(), BoxError> {
    let explicit = fallback::Settings::new().with_explicit(true);
    let stack = Stack::tools().with_last_good(explicit)?.build()?;
    let begun = Instant::now();
    let answer = loop {
        match stack.layer(lease.clone()).oneshot(call.clone()).await {
            Ok(answer) => break answer,
            Err(failure) if failure.class() == Class::NotSent && begun.elapsed() < START => {
                sleep(failure.retry_in().unwrap_or(MOMENT)).await;
            }
            Err(failure) => return Err(failure.into()),
        }
    };
    println!("answered: {} after {:?}", answer.source, begun.elapsed());
    if answer.is_live() && answer.value.is_error != Some(true) {
        return Ok(());
    }
    Err(format!("no good answer: {:?}", answer.value.content).into())
}

fn signal(pid: u32, name: &str) -> Result<(), BoxError> {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("kill -{name} {pid} failed").into())
    }
}

// === impl Server ===

impl Server {
    fn start(command: &[String]) -> Result<Self, BoxError> {
        let Some((program, args)) = command.split_first() else {
            return Ok(Self::Pooled);
        };
        let mut command_line = Command::new(program);
        // What it has to tell is not what is looked at here.
        command_line
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command_line.spawn()?;
        Ok(Self::Own {
            command: command.to_vec(),
            child,
        })
    }

    fn pid(&self, pool: &Pool) -> Result<u32, BoxError> {
        let pooled = || {
            let snapshot = pool.snapshot();
            let mut entries = snapshot
                .servers
                .values()
                .flat_map(|server| &server.entry_summary);
            entries.find_map(|entry| entry.pid)
        };
        match self {
            Self::Own { child, .. } => Ok(child.id()),
            Self::Pooled => pooled()
                .ok_or_else(|| "a server that is reached by an address needs a COMMAND".into()),
        }
    }

    fn restart(&mut self) -> Result<(), BoxError> {
        if let Self::Own { command, child } = self {
            child.wait()?;
            let command = std::mem::take(command);
            *self = Self::start(&command)?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Own { child, .. } = self {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

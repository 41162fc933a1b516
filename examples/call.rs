//! Calls a tool of a server in an `mcpServers` file, through the whole stack.
//!
//! ```text
//! cargo run --example call -- --config mcp.json SERVER TOOL '{"json":"arguments"}'
//! cargo run --example call -- --config mcp.json --list [SERVER]
//! ```
//!
//! It prints the result and where it came from. On failure it prints one line that says
//! what to do and exits with 1; with 2 if it was called wrongly.

use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use steadfast::{
    Call as _, ConfigFile, Lease, Pool, PoolSettings, ServerConfig, Sourced, Stack, fallback,
    rmcp::model::{CallToolResult, ToolAnnotations},
};
use tower::{Layer as _, ServiceExt as _};

type BoxError = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: call --config FILE SERVER TOOL ['{\"json\":\"arguments\"}'] | call --config FILE --list [SERVER]";

/// What was asked for on the command line.
enum Command {
    List(Option<String>),
    Call {
        server: String,
        tool: String,
        arguments: Map<String, Value>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().any(|arg| arg == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let (config, command) = match parse(std::env::args().skip(1)) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("call: {error}; {USAGE}");
            return ExitCode::from(2);
        }
    };
    let pool = match Pool::new(PoolSettings::default()) {
        Ok(pool) => pool,
        Err(error) => return failed(&error.into()),
    };
    let outcome = tokio::select! {
        outcome = run(&pool, &config, command) => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    // However it went: no server is left behind.
    pool.drain_all(Duration::from_secs(10)).await;
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &BoxError) -> ExitCode {
    eprintln!("call: {error}");
    ExitCode::FAILURE
}

async fn run(pool: &Pool, config: &str, command: Command) -> Result<(), BoxError> {
    let file = ConfigFile::load(config);
    for warning in file.warnings() {
        eprintln!("call: warning: {warning}");
    }
    match command {
        Command::List(None) => {
            for error in file.errors() {
                eprintln!("call: {error}");
            }
            list_all(pool, file.servers(), file.errors().len()).await
        }
        Command::List(Some(server)) => list_all(pool, [find(&file, &server)?], 0).await,
        Command::Call {
            server,
            tool,
            arguments,
        } => call(pool, find(&file, &server)?, tool, arguments).await,
    }
}

/// The server of this name, or the one line that says why there is none.
fn find<'a>(file: &'a ConfigFile, name: &str) -> Result<&'a ServerConfig, BoxError> {
    if let Some(server) = file.server(name) {
        return Ok(server);
    }
    // What is wrong with this server, else with the file as a whole.
    let errors = file.errors().iter();
    let mine = errors.filter(|error| error.server().is_none_or(|server| server == name));
    if let Some(error) = mine.into_iter().next() {
        return Err(error.to_string().into());
    }
    let known: Vec<&str> = file
        .servers()
        .iter()
        .map(|server| &**server.name())
        .collect();
    Err(format!(
        "no server {name:?} in the file; it has: {}",
        known.join(", ")
    )
    .into())
}

async fn call(
    pool: &Pool,
    server: &ServerConfig,
    tool: String,
    arguments: Map<String, Value>,
) -> Result<(), BoxError> {
    let session = pool.session("call");
    // Here a failure is to stay one; an agent would rather have a result that says so.
    let explicit = fallback::Settings::new().with_explicit(true);
    let stack = Stack::tools().with_last_good(explicit)?.build()?;
    let lease = session.acquire(server).await?;
    let call = lease.tool(tool).with_arguments(arguments);
    let answer = stack.layer(lease).oneshot(call).await?;
    print(&answer)
}

fn print(answer: &Sourced<CallToolResult>) -> Result<(), BoxError> {
    println!("{}", serde_json::to_string_pretty(&answer.value)?);
    eprintln!("source: {}", answer.source);
    match answer.value.is_error {
        Some(true) => Err("the tool itself reported an error, see its result".into()),
        Some(false) | None => Ok(()),
    }
}

async fn list_all<'a>(
    pool: &Pool,
    servers: impl IntoIterator<Item = &'a ServerConfig>,
    mut failures: usize,
) -> Result<(), BoxError> {
    let session = pool.session("list");
    for (name, lease) in session.acquire_all(servers).await {
        match lease {
            Ok(lease) => list(&name, &lease),
            Err(failure) => {
                failures += 1;
                eprintln!("call: {failure}");
            }
        }
    }
    match failures {
        0 => Ok(()),
        failures => Err(format!("{failures} of the file's servers could not be listed").into()),
    }
}

fn list(name: &Arc<str>, lease: &Lease) {
    let view = lease.tools();
    println!("{name}: {} tools", view.tools.len());
    if let Some(failure) = view.stale {
        eprintln!("call: the list of {name:?} is not complete: {failure}");
    }
    for tool in view.tools.iter() {
        let effect = lease.tool(tool.name.to_string()).effect();
        let hints = tool.annotations.as_ref().map(hints).unwrap_or_default();
        println!("  {:<32} {effect:<15} {hints}", tool.name);
    }
}

/// The hints of a tool. They count only for a server with `"trust": true`.
fn hints(annotations: &ToolAnnotations) -> String {
    let hints = [
        ("readOnly", annotations.read_only_hint),
        ("destructive", annotations.destructive_hint),
        ("idempotent", annotations.idempotent_hint),
        ("openWorld", annotations.open_world_hint),
    ];
    let said = hints
        .iter()
        .filter_map(|(name, hint)| hint.map(|hint| format!("{name}={hint}")));
    said.collect::<Vec<_>>().join(" ")
}

fn parse(args: impl Iterator<Item = String>) -> Result<(String, Command), BoxError> {
    let (mut config, mut list, mut rest) = (None, false, Vec::new());
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--config" => config = Some(args.next().ok_or("--config needs a file")?),
            "--list" => list = true,
            flag if flag.starts_with("--") => return Err(format!("unknown option {flag}").into()),
            _ => rest.push(arg),
        }
    }
    let config = config.ok_or("--config FILE is missing")?;
    let mut rest = rest.into_iter();
    let command = if list {
        Command::List(rest.next())
    } else {
        Command::Call {
            server: rest.next().ok_or("SERVER is missing")?,
            tool: rest.next().ok_or("TOOL is missing")?,
            arguments: match rest.next() {
                Some(text) => serde_json::from_str(&text)
                    .map_err(|error| format!("the arguments must be a JSON object: {error}"))?,
                None => Map::new(),
            },
        }
    };
    match rest.next() {
        Some(extra) => Err(format!("unexpected argument {extra:?}").into()),
        None => Ok((config, command)),
    }
}

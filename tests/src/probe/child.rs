//! The probe as a process.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::events::EventKind;
use super::knobs::{HelperKnobs, InvalidKnobs, KNOBS_ENV, Knobs};
use super::server::Server;
use super::stdio::connect;

const USAGE: &str = "usage: probe [--probe] [--knobs '{…}']\n\
    An MCP server over stdin and stdout, HTTP or WebSockets that misbehaves as the knobs say.\n\
    Without --knobs they are read from the environment variable STEADFAST_PROBE.";

/// The exit code of a probe that cannot start.
const CANNOT_START: i32 = 2;

#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Knobs(#[from] InvalidKnobs),
    #[error("unknown argument {0:?}\n{USAGE}")]
    Argument(String),
    #[error("{0} needs a value\n{USAGE}")]
    Value(&'static str),
    #[error("cannot start: {0}")]
    Io(#[from] io::Error),
}

enum Role {
    Server(Box<Knobs>),
    Helper(HelperKnobs),
    Usage,
}

/// Serves over stdin and stdout and ends the process, if its first argument is `--probe`;
/// otherwise returns.
///
/// To be called first in `main`, before a runtime is made: then a program can start itself as the
/// server it needs, with the entry that [`Knobs::server_json`] gives.
pub fn serve_if_child() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--probe") {
        run(arguments);
    }
}

/// Serves as `arguments` say (without the program's name), and ends the process.
///
/// They are `--probe`, which changes nothing, and `--knobs JSON`, which replaces the knobs in the
/// environment. What cannot be read is told on stderr, with exit code 2.
pub fn run(arguments: impl Iterator<Item = String>) -> ! {
    let code = match role(arguments, std::env::var(KNOBS_ENV).ok()) {
        Ok(role) => play(role).map_err(StartError::Io),
        Err(error) => Err(error),
    };
    std::process::exit(code.unwrap_or_else(|error| {
        eprintln!("probe: {error}");
        CANNOT_START
    }))
}

fn role(
    mut arguments: impl Iterator<Item = String>,
    environment: Option<String>,
) -> Result<Role, StartError> {
    let mut text = environment;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--probe" => {}
            "--help" | "-h" => return Ok(Role::Usage),
            "--knobs" => text = Some(arguments.next().ok_or(StartError::Value("--knobs"))?),
            "--helper" => {
                let knobs = arguments.next().ok_or(StartError::Value("--helper"))?;
                let knobs = serde_json::from_str(&knobs).map_err(InvalidKnobs::from)?;
                return Ok(Role::Helper(knobs));
            }
            _ => return Err(StartError::Argument(argument)),
        }
    }
    let knobs = text.map_or_else(|| Ok(Knobs::default()), |text| Knobs::from_json(&text))?;
    Ok(Role::Server(Box::new(knobs)))
}

fn play(role: Role) -> io::Result<i32> {
    // One thread: messages are handled in the order they came, and a hundred probes cost little.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match role {
        Role::Usage => {
            println!("{USAGE}");
            Ok(0)
        }
        #[cfg(unix)]
        Role::Helper(knobs) => runtime.block_on(super::helper::run(&knobs)),
        #[cfg(not(unix))]
        Role::Helper(_) => Err(io::ErrorKind::Unsupported.into()),
        Role::Server(knobs) => {
            let code = runtime.block_on(serve_process(*knobs));
            // A read of stdin that never ends would hold the runtime.
            runtime.shutdown_background();
            code
        }
    }
}

async fn serve_process(knobs: Knobs) -> io::Result<i32> {
    let server = Server::start(knobs)?;
    let (input, output) = take_stdio()?;
    if let Some(line) = &server.knobs.start.stderr {
        eprintln!("{line}");
    }
    start_helper(&server, &output)?;
    burn(server.knobs.start.burn_ms);
    let life = server.knobs.process.life(&server.knobs.wire);
    let term = terminated(Arc::clone(&server))?;
    let input = tokio::fs::File::from_std(input);
    tokio::select! {
        code = serve_with(&server, input, output) => code,
        code = term => Ok(code),
        () = sleep(life.unwrap_or(Duration::MAX)), if life.is_some() => Ok(0),
    }
}

async fn serve_with(server: &Arc<Server>, input: tokio::fs::File, output: File) -> io::Result<i32> {
    if server.knobs.http.is_some() {
        return super::http::serve_process(server, input, output).await;
    }
    if server.knobs.websocket.is_some() {
        return super::websocket::serve_process(server, input, output).await;
    }
    Ok(connect(server, input, tokio::fs::File::from_std(output)).await)
}

/// Keeps the only thread busy, as a server does that loads much code.
fn burn(ms: u64) {
    let start = cpu_time();
    while cpu_time().saturating_sub(start) < Duration::from_millis(ms) {
        std::hint::spin_loop();
    }
}

// Its own time and not the clock's: on a busy machine the work takes as long as it takes.
#[cfg(unix)]
fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or(Duration::MAX)
}

#[cfg(not(unix))]
fn cpu_time() -> Duration {
    use std::sync::LazyLock;

    static START: LazyLock<tokio::time::Instant> = LazyLock::new(tokio::time::Instant::now);
    START.elapsed()
}

/// Moves stdin and stdout to descriptors of our own, so that dropping one closes it for the other
/// side; the standard ones become the null device.
#[cfg(unix)]
fn take_stdio() -> io::Result<(File, File)> {
    use std::os::fd::AsFd;

    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((input.into(), output.into()))
}

#[cfg(windows)]
fn take_stdio() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;

    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

#[cfg(unix)]
fn start_helper(server: &Server, output: &File) -> io::Result<()> {
    if let Some(knobs) = &server.knobs.process.helper {
        let pid = super::helper::start(knobs, output)?;
        server.tell_helper(pid);
        server.helper.get_or_init(|| pid);
    }
    Ok(())
}

#[cfg(not(unix))]
fn start_helper(server: &Server, _: &File) -> io::Result<()> {
    match server.knobs.process.helper {
        Some(_) => Err(io::ErrorKind::Unsupported.into()),
        None => Ok(()),
    }
}

/// Ends with an exit code when SIGTERM comes and a knob says what to do about it; without such a
/// knob the signal keeps its default effect.
#[cfg(unix)]
fn terminated(server: Arc<Server>) -> io::Result<impl Future<Output = i32>> {
    use tokio::signal::unix::{SignalKind, signal};

    let process = &server.knobs.process;
    let handled = process.ignore_sigterm || process.goodbye.is_some();
    let mut signals = handled
        .then(|| signal(SignalKind::terminate()))
        .transpose()?;
    Ok(async move {
        let Some(signals) = &mut signals else {
            return std::future::pending().await;
        };
        while signals.recv().await.is_some() {
            server.tell(EventKind::Term);
            if !server.knobs.process.ignore_sigterm {
                break;
            }
        }
        server.say("term");
        0
    })
}

#[cfg(not(unix))]
fn terminated(_: Arc<Server>) -> io::Result<impl Future<Output = i32>> {
    Ok(std::future::pending())
}

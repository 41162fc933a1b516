//! One client over a pair of byte streams, one message per line.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinSet;

use super::events::EventKind;
use super::knobs::Knobs;
use super::outbox::{Out, Outbox};
use super::pause::pause;
use super::server::Server;
use super::session::Session;
use super::writer::Writer;

/// Serves one client over `input` and `output` until the input ends or a knob ends the server,
/// and returns the code that a process would exit with.
///
/// Calls that run when the input ends are not answered. Knobs that need a process of their own
/// (`helper`, `burn_ms`, `start.stderr`, signals, `life_ms`) do nothing here.
///
/// # Errors
/// When a file of the knobs cannot be opened.
///
/// # Cancel safety
/// Dropping the future ends the server and closes both streams.
pub async fn serve<I, O>(knobs: Knobs, input: I, output: O) -> io::Result<i32>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let server = Server::start(knobs)?;
    Ok(connect(&server, input, output).await)
}

/// Ends the calls of a session when dropped: they hold the session, so it would never go.
struct StopOnDrop(Arc<Session>);

pub(crate) async fn connect<I, O>(server: &Arc<Server>, input: I, output: O) -> i32
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    if let Some(code) = server.knobs.start.exit {
        return code;
    }
    let (out, queue) = Outbox::new();
    let mut writer = JoinSet::new();
    writer.spawn(Writer::new(Arc::clone(server), output).run(queue));
    let session = StopOnDrop(Session::new(Arc::clone(server)));
    let code = tokio::select! {
        biased;
        code = server.exited() => code,
        never = read(&session.0, input, &out) => match never {},
    };
    writer.shutdown().await;
    code
}

/// Reads until there is nothing more to read, and then only waits for the exit.
async fn read<I>(session: &Arc<Session>, input: I, out: &Outbox) -> std::convert::Infallible
where
    I: AsyncRead + Unpin,
{
    let server = &session.server;
    let wire = &server.knobs.wire;
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    let mut count = 0;
    loop {
        if wire.stop_reading_after.is_some_and(|limit| count >= limit) {
            return std::future::pending().await;
        }
        if wire.close_stdin_after.is_some_and(|limit| count >= limit) {
            drop(input);
            return std::future::pending().await;
        }
        line.clear();
        // An error is an end as well: nothing more can come.
        if matches!(input.read_until(b'\n', &mut line).await, Ok(0) | Err(_)) {
            break;
        }
        count += 1;
        if let Some(junk) = &wire.junk_echo {
            out.push(Out::Junk(junk.clone()));
        }
        session.receive(&line, out).await;
    }
    end_of_input(server, out).await;
    std::future::pending().await
}

async fn end_of_input(server: &Server, out: &Outbox) {
    server.tell(EventKind::Eof);
    let process = &server.knobs.process;
    if process.ignore_eof {
        return;
    }
    pause(process.eof_delay_ms).await;
    server.say("bye");
    out.push(Out::Exit(0));
}

// === impl StopOnDrop ===

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

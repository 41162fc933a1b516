//! The probe as a process that serves HTTP.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::super::events::EventKind;
use super::super::pause::pause;
use super::super::server::Server;
use super::probe::begin;

/// Prints where it is found, and serves until its input ends or a knob ends it.
pub(crate) async fn serve_process<I, O>(
    server: &Arc<Server>,
    input: I,
    mut output: O,
) -> io::Result<i32>
where
    I: AsyncRead + Unpin,
    O: Write,
{
    if let Some(code) = server.knobs.start.exit {
        return Ok(code);
    }
    let (_site, address, serving) = begin(Arc::clone(server), false).await?;
    writeln!(output, "{}", address.url())?;
    output.flush()?;
    tokio::select! {
        biased;
        code = server.exited() => Ok(code),
        code = ended(server, input) => Ok(code),
        served = serving => served.map(|()| 1),
    }
}

/// Whoever started it has gone.
pub(crate) async fn ended(server: &Server, mut input: impl AsyncRead + Unpin) -> i32 {
    let mut buffer = [0; 1024];
    // Nothing that comes this way says anything.
    while matches!(input.read(&mut buffer).await, Ok(1..)) {}
    server.tell(EventKind::Eof);
    let process = &server.knobs.process;
    if process.ignore_eof {
        return std::future::pending().await;
    }
    pause(process.eof_delay_ms).await;
    server.say("bye");
    0
}

//! One connection: a request after the other, and what ends it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep_until;

use super::super::knobs::{At, Cut, HttpFault};
use super::super::pause::pause;
use super::body;
use super::deliver::Delivery;
use super::head::{Head, MAX_HEAD, invalid};
use super::requests::HttpRequest;
use super::site::Site;
use super::socket::{Moved, Socket};

/// How much is read at once.
const READ: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    /// Read and not looked at yet.
    buffer: Vec<u8>,
    number: u64,
}

/// Why nothing more is sent on a connection.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The client went away.
    Gone,
    Cut(Cut),
}

/// Serves a connection until it ends.
pub(crate) async fn serve(site: Arc<Site>, socket: Socket, number: u64) {
    let moved = socket.moved();
    let mut connection = Connection {
        socket,
        buffer: Vec::new(),
        number,
    };
    let mut cuts = site.gate.cuts();
    let cut = tokio::select! {
        biased;
        cut = cuts.next() => cut,
        () = idle(&site, moved) => Cut::Close,
        stop = requests(&site, &mut connection) => match stop {
            Stop::Gone => Cut::Close,
            Stop::Cut(cut) => cut,
        },
    };
    connection.end(cut).await;
}

async fn requests(site: &Arc<Site>, connection: &mut Connection) -> Stop {
    loop {
        if let Err(stop) = request(site, connection).await {
            return stop;
        }
        if site.rules.read(|knobs| knobs.no_keep_alive) {
            return Stop::Cut(Cut::Close);
        }
    }
}

async fn request(site: &Arc<Site>, connection: &mut Connection) -> Result<(), Stop> {
    let head = connection.head().await?;
    let seen = HttpRequest::new(connection.number, &head);
    if let Some(fault) = site.rules.unread(&seen.names()) {
        site.recorder.note(&seen);
        pause(fault.delay_ms).await;
        cut(site, connection, &fault, At::Unread).await?;
        let reply = super::reply::Reply::instead(&fault, &serde_json::Value::Null);
        let reply = reply.touched(&fault);
        Delivery::new(site, connection, &fault).send(reply).await?;
        return Err(Stop::Cut(Cut::Close));
    }
    let body = body::read(connection, &head).await?;
    let seen = seen.with_body(&body);
    site.recorder.note(&seen);
    let fault = site.fault(&seen, &body);
    pause(fault.delay_ms).await;
    cut(site, connection, &fault, At::Received).await?;
    let reply = site.reply(&head, &body, &fault).await;
    if fault.at == At::Executed && fault.cut.is_some() {
        reply.executed().await;
    }
    cut(site, connection, &fault, At::Executed).await?;
    Delivery::new(site, connection, &fault).send(reply).await
}

/// Ends the exchange here if `fault` says so.
pub(crate) async fn cut(
    site: &Site,
    connection: &mut Connection,
    fault: &HttpFault,
    at: At,
) -> Result<(), Stop> {
    let Some(cut) = fault.cut_at(at) else {
        return Ok(());
    };
    if let Some(ms) = fault.outage_ms {
        site.gate.down_for(cut, Duration::from_millis(ms));
    }
    match cut {
        Cut::End => Ok(()),
        Cut::Stall if at == At::Unread => std::future::pending().await,
        Cut::Stall => {
            connection.gone().await;
            Err(Stop::Gone)
        }
        Cut::Reset | Cut::Close => Err(Stop::Cut(cut)),
    }
}

/// Ends once nothing has moved for as long as a proxy looks on.
async fn idle(site: &Site, moved: Moved) {
    loop {
        // Looked up again and again: the knob can be turned.
        let limit = site.rules.read(|knobs| knobs.idle_ms);
        let Some(limit) = limit else {
            pause(50).await;
            continue;
        };
        let end = moved.at() + Duration::from_millis(limit);
        sleep_until(end).await;
        if moved.at() + Duration::from_millis(limit) <= end {
            return;
        }
    }
}

// === impl Connection ===

impl Connection {
    async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some((head, length)) = Head::parse(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(head);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("the head is too long"));
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        self.buffer.reserve(READ);
        match self.socket.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(crate) async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.read().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// The next line, without its end.
    pub(crate) async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.read().await?;
        }
    }

    /// Returns once the client has gone. What it sends meanwhile is kept.
    pub(crate) async fn gone(&mut self) {
        while self.read().await.is_ok() {}
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.socket.write_all(bytes).await?;
        self.socket.flush().await?;
        Ok(())
    }

    async fn end(mut self, cut: Cut) {
        self.socket.prepare(cut);
        if cut != Cut::Reset {
            // A peer that reads no more must not hold us.
            let closing = self.socket.shutdown();
            let _ = tokio::time::timeout(Duration::from_secs(1), closing).await;
        }
    }
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        // Nothing that cannot be read is worth an answer.
        Self::Gone
    }
}

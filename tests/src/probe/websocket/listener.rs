//! The probe as a process that serves WebSockets.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncRead;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::super::http::{Cipher, HttpRequest, Recorder, ended};
use super::super::knobs::WebSocketKnobs;
use super::super::server::Server;
use super::{connection, upgrade};

/// What all connections share.
struct Site {
    server: Arc<Server>,
    knobs: WebSocketKnobs,
    cipher: Cipher,
    recorder: Recorder,
    upgrades: AtomicU64,
}

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
    let knobs = server.knobs.websocket.clone().unwrap_or_default();
    let (cipher, _) = Cipher::new(&knobs.as_http())?;
    let listener = listen(&knobs)?;
    let scheme = if knobs.tls.is_some() { "wss" } else { "ws" };
    let port = listener.local_addr()?.port();
    let site = Arc::new(Site {
        recorder: Recorder::new(knobs.requests.as_deref(), false)?,
        server: Arc::clone(server),
        cipher,
        upgrades: AtomicU64::new(0),
        knobs,
    });
    writeln!(output, "{scheme}://127.0.0.1:{port}/mcp")?;
    output.flush()?;
    tokio::select! {
        biased;
        code = server.exited() => Ok(code),
        code = ended(server, input) => Ok(code),
        served = serve(&site, listener) => served.map(|()| 1),
    }
}

fn listen(knobs: &WebSocketKnobs) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = knobs.receive_buffer {
        // Its connections have it from the listener.
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, knobs.port)))?;
    socket.listen(1024)
}

async fn serve(site: &Arc<Site>, listener: TcpListener) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let site = Arc::clone(site);
        connections.spawn(async move {
            // A client that goes away is no fault of the server.
            if let Ok(Some(code)) = site.connection(stream).await {
                site.server.exit(code);
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

// === impl Site ===

impl Site {
    async fn connection(&self, stream: TcpStream) -> io::Result<Option<i32>> {
        stream.set_nodelay(true)?;
        let mut socket = self.cipher.accept(stream).await?;
        let head = upgrade::read(&mut socket).await?;
        let number = self.upgrades.fetch_add(1, Ordering::Relaxed) + 1;
        self.recorder.note(&HttpRequest::new(number, &head));
        let faulty = self.knobs.times.is_none_or(|times| number <= times);
        if !upgrade::answer(&mut socket, &head, &self.knobs, faulty).await? {
            return Ok(None);
        }
        // A server of its own, so that one can exit and the others live on.
        let server = Server::start(self.server.knobs.clone())?;
        Ok(connection::serve(socket, &server, &self.knobs).await)
    }
}

//! A connection's socket, with or without TLS around it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use super::super::knobs::Cut;
use super::super::server::lock;

/// A socket that knows when something last moved on it.
#[derive(Debug)]
pub(crate) struct Socket {
    inner: Inner,
    moved: Moved,
}

/// When something last moved on a socket.
#[derive(Clone, Debug)]
pub(crate) struct Moved(Arc<Mutex<Instant>>);

#[derive(Debug)]
enum Inner {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

// === impl Socket ===

impl Socket {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self::new(Inner::Plain(stream))
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self::new(Inner::Tls(Box::new(stream)))
    }

    fn new(inner: Inner) -> Self {
        Self {
            inner,
            moved: Moved(Arc::new(Mutex::new(Instant::now()))),
        }
    }

    pub(crate) fn moved(&self) -> Moved {
        self.moved.clone()
    }

    /// Ends the connection when it is dropped after this.
    pub(crate) fn prepare(&self, cut: Cut) {
        let tcp = match &self.inner {
            Inner::Plain(tcp) => tcp,
            Inner::Tls(tls) => tls.get_ref().0,
        };
        if cut == Cut::Reset {
            // What is not sent yet is thrown away, and the peer is told so.
            let _ = tcp.set_zero_linger();
        }
    }

    fn stream(self: Pin<&mut Self>) -> (Pin<&mut dyn Duplex>, &Moved) {
        let this = self.get_mut();
        let inner: Pin<&mut dyn Duplex> = match &mut this.inner {
            Inner::Plain(tcp) => Pin::new(tcp),
            Inner::Tls(tls) => Pin::new(tls.as_mut()),
        };
        (inner, &this.moved)
    }
}

// === impl Moved ===

impl Moved {
    pub(crate) fn at(&self) -> Instant {
        *lock(&self.0)
    }

    fn now(&self) {
        *lock(&self.0) = Instant::now();
    }
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (inner, moved) = self.stream();
        let polled = inner.poll_read(cx, buffer);
        if polled.is_ready() {
            moved.now();
        }
        polled
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let (inner, moved) = self.stream();
        let polled = inner.poll_write(cx, bytes);
        if polled.is_ready() {
            moved.now();
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().0.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().0.poll_shutdown(cx)
    }
}

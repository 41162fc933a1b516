//! A TCP connection that can be asked how it is.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// A TCP connection with a [`Pulse`].
#[derive(Debug)]
pub(crate) struct Tcp(Pulse);

/// How a TCP connection is.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<TcpStream>);

/// What there is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Nothing,
    Bytes,
    /// There will be nothing more: the other end has closed it, or it broke.
    Gone,
}

// === impl Pulse ===

impl Pulse {
    /// Looks whether there is something to be read, without reading it.
    pub(super) fn feel(&self) -> News {
        let mut byte = [MaybeUninit::uninit()];
        // Asks the system itself: what the runtime knows is older.
        match SockRef::from(&*self.0).peek(&mut byte) {
            Ok(0) => News::Gone,
            Ok(_) => News::Bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => News::Nothing,
                _ => News::Gone,
            },
        }
    }
}

// === impl Tcp ===

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Pulse(Arc::new(stream)))
    }

    pub(crate) fn pulse(&self) -> Pulse {
        self.0.clone()
    }
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Pulse(stream) = &self.0;
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    buffer.advance(read?);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Pulse(stream) = &self.0;
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                taken => return Poll::Ready(taken),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = SockRef::from(&*self.0.0);
        Poll::Ready(match socket.shutdown(std::net::Shutdown::Write) {
            // Closed by the other end already.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            shut => shut,
        })
    }
}

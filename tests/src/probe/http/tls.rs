//! TLS with a certificate that nobody has signed.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::super::knobs::{HttpKnobs, Tls};
use super::socket::Socket;

/// How bytes are wrapped.
#[derive(Clone)]
pub(crate) enum Cipher {
    None,
    Tls(TlsAcceptor),
    /// The client's first word is never answered.
    Stall,
}

// === impl Cipher ===

impl Cipher {
    /// What the knobs ask for, and the certificate as PEM, if there is one.
    pub(crate) fn new(knobs: &HttpKnobs) -> io::Result<(Self, Option<String>)> {
        match knobs.tls {
            None => Ok((Self::None, None)),
            Some(Tls::Stall) => Ok((Self::Stall, None)),
            Some(Tls::SelfSigned) => {
                let (cipher, certificate) = self_signed().map_err(io::Error::other)?;
                write(knobs.cert_file.as_deref(), &certificate)?;
                Ok((cipher, Some(certificate)))
            }
        }
    }

    pub(crate) const fn scheme(&self) -> &'static str {
        match self {
            Self::None => "http",
            Self::Tls(_) | Self::Stall => "https",
        }
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<Socket> {
        match self {
            Self::None => Ok(Socket::plain(stream)),
            Self::Tls(acceptor) => Ok(Socket::tls(acceptor.accept(stream).await?)),
            Self::Stall => {
                let _stream = stream;
                std::future::pending().await
            }
        }
    }
}

fn self_signed() -> Result<(Cipher, String), Box<dyn std::error::Error + Send + Sync>> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(signing_key.serialize_der())?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok((Cipher::Tls(acceptor), cert.pem()))
}

fn write(path: Option<&Path>, certificate: &str) -> io::Result<()> {
    path.map_or(Ok(()), |path| std::fs::write(path, certificate))
}

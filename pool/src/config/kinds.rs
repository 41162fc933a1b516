//! The kinds of server that are made in code.

use tokio::io::DuplexStream;

use super::{
    builder::ServerConfigBuilder, draft::Draft, family::Family, in_process::InProcess,
    server::ServerConfig,
};

// === impl ServerConfig ===

impl ServerConfig {
    /// A server that is a program to start.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>) -> ServerConfigBuilder {
        ServerConfigBuilder::new(Draft {
            name: name.into(),
            family: Some(Family::Stdio),
            command: Some(command.into()),
            ..Draft::default()
        })
    }

    /// A server that is reached by streamable HTTP at `url`.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> ServerConfigBuilder {
        Self::remote(Family::Http, name.into(), url.into())
    }

    /// A server that is reached by a WebSocket at `url`.
    pub fn websocket(name: impl Into<String>, url: impl Into<String>) -> ServerConfigBuilder {
        Self::remote(Family::WebSocket, name.into(), url.into())
    }

    /// A server that lives in this program: for each connection, `serve` gets the server's
    /// end of it, which carries one message per line, and serves it for as long as it runs.
    ///
    /// It is never shared between sessions. It runs as a task of the runtime in which the
    /// connection is made, and is spoken to as a program is: a call that was not written
    /// yet can be taken back, and a handler that returns or panics ends its connection.
    /// When the connection is closed its input ends, and it is aborted if it does not
    /// return within [`closing.eof`](crate::PoolSettings::closing). A handler that lets a
    /// panic in a tool pass unanswered, as those of `rmcp` do, leaves that call to its
    /// read limit.
    ///
    /// Two configurations are the same server if one is a clone of the other.
    ///
    /// ```
    /// use rmcp::{ServerHandler, ServiceExt as _};
    /// use steadfast_pool::ServerConfig;
    ///
    /// struct Tools;
    /// impl ServerHandler for Tools {}
    ///
    /// # fn main() -> Result<(), steadfast_pool::ConfigErrors> {
    /// let tools = ServerConfig::in_process("tools", async |connection| {
    ///     if let Ok(serving) = Tools.serve(connection).await {
    ///         let _ = serving.waiting().await;
    ///     }
    /// })
    /// .build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_process<F>(
        name: impl Into<String>,
        serve: impl Fn(DuplexStream) -> F + Send + Sync + 'static,
    ) -> ServerConfigBuilder
    where
        F: Future<Output = ()> + Send + 'static,
    {
        ServerConfigBuilder::new(Draft {
            name: name.into(),
            family: Some(Family::InProcess),
            in_process: Some(InProcess::new(serve)),
            ..Draft::default()
        })
    }

    fn remote(family: Family, name: String, url: String) -> ServerConfigBuilder {
        ServerConfigBuilder::new(Draft {
            name,
            family: Some(family),
            url: Some(url.into()),
            ..Draft::default()
        })
    }
}

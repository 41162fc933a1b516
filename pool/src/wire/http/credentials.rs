//! Tokens that somebody else gets and renews.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _, Shared};
use secrecy::SecretString;
use tokio::time::timeout;

use crate::ServerConfig;

/// How long whoever gets tokens may take for one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Gets the bearer tokens of HTTP servers, and newer ones when they are refused.
///
/// It is asked once for any number of calls: those that come while it is being asked wait
/// for the same answer, over all sessions whose servers have the same configuration. A
/// server whose configuration has an `authorization` header, or a login in its address, is
/// not asked for.
///
/// ```
/// use futures::future::{BoxFuture, FutureExt as _};
/// use secrecy::SecretString;
/// use steadfast_pool::{Authorize, AuthorizeError, Rejected, ServerConfig};
///
/// #[derive(Debug)]
/// struct FromEnvironment;
///
/// impl Authorize for FromEnvironment {
///     fn token(
///         &self,
///         _server: &ServerConfig,
///         rejected: Option<Rejected>,
///     ) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizeError>> {
///         let token = std::env::var("TOKEN").ok().map(SecretString::from);
///         // There is no newer one than the one that was refused.
///         let token = token.filter(|_| rejected.is_none());
///         async { Ok(token) }.boxed()
///     }
/// }
/// ```
pub trait Authorize: fmt::Debug + Send + Sync + 'static {
    /// The token to send to `server`; `None` to send none. After a 401, `rejected` says
    /// what was refused; then `None` means that there is no newer one, and the 401 is what
    /// the call ends with. What the configuration says about logging in is in
    /// [`ServerConfig::oauth`] and beside it.
    ///
    /// It runs to its end even if the calls that wait for it are given up, so that a token
    /// that can be renewed only once is not lost; at most 30 s.
    ///
    /// # Errors
    ///
    /// [`AuthorizeError`] says whether the credentials are still good; a call that needs
    /// them was not sent.
    fn token(
        &self,
        server: &ServerConfig,
        rejected: Option<Rejected>,
    ) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizeError>>;
}

/// A request that was refused for want of a good token.
#[derive(Clone)]
#[non_exhaustive]
pub struct Rejected {
    /// The token that was refused, if one was sent.
    pub token: Option<SecretString>,
    /// What the server asks for: its `WWW-Authenticate` header.
    pub challenge: Option<String>,
}

/// Why there is no token.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizeError {
    /// Nobody could be asked. The credentials may be as good as before: the call may be
    /// tried again.
    #[error("the credentials could not be renewed: {0}")]
    Unavailable(#[source] Arc<dyn Error + Send + Sync>),
    /// The credentials are no good any more. The call ends with the server's 401.
    #[error("the credentials are refused: {0}")]
    Refused(#[source] Arc<dyn Error + Send + Sync>),
}

/// The token for one server, shared by all connections to it.
#[derive(Debug)]
pub(crate) struct Credentials {
    authorize: Arc<dyn Authorize>,
    server: ServerConfig,
    held: Mutex<Held>,
}

/// A token, and which it is of those that were given for this server.
#[derive(Clone, Debug, Default)]
pub(super) struct Token {
    pub(super) secret: Option<SecretString>,
    generation: u64,
}

type Asking = Shared<BoxFuture<'static, Result<Token, AuthorizeError>>>;

#[derive(Debug, Default)]
struct Held {
    token: Option<Token>,
    /// The generation of the last token there was.
    generation: u64,
    asking: Option<Asking>,
}

// === impl Rejected ===

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected").finish_non_exhaustive()
    }
}

// === impl AuthorizeError ===

impl AuthorizeError {
    /// Nobody could be asked, for this reason.
    pub fn unavailable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable(Arc::from(cause.into()))
    }

    /// The credentials are no good any more, for this reason.
    pub fn refused(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Refused(Arc::from(cause.into()))
    }
}

// === impl Credentials ===

impl Credentials {
    pub(crate) fn new(authorize: Arc<dyn Authorize>, server: ServerConfig) -> Self {
        Self {
            authorize,
            server,
            held: Mutex::default(),
        }
    }

    /// The token there is, or the first one.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Token, AuthorizeError> {
        let asking = {
            let mut held = self.held();
            if let Some(token) = &held.token {
                return Ok(token.clone());
            }
            self.ask(&mut held, None)
        };
        asking.await
    }

    /// A newer token than one that was refused. One that somebody else got meanwhile is
    /// newer.
    pub(super) async fn renew(
        self: &Arc<Self>,
        refused: Token,
        challenge: Option<String>,
    ) -> Result<Token, AuthorizeError> {
        let asking = {
            let mut held = self.held();
            match &held.token {
                Some(token) if token.generation > refused.generation => return Ok(token.clone()),
                _ => self.ask(&mut held, Some((refused, challenge))),
            }
        };
        asking.await
    }

    /// Asks, or joins those who are asking.
    fn ask(self: &Arc<Self>, held: &mut Held, refused: Option<(Token, Option<String>)>) -> Asking {
        let under_way = held.asking.as_ref();
        if let Some(asking) = under_way.filter(|asking| asking.peek().is_none()) {
            return asking.clone();
        }
        // A task: it goes on when those who wait for it are gone.
        let task = tokio::spawn(Arc::clone(self).fetch(refused));
        let asking = async {
            let ended = |_| Err(AuthorizeError::unavailable("it ended without a word"));
            task.await.unwrap_or_else(ended)
        };
        let asking = asking.boxed().shared();
        held.asking = Some(asking.clone());
        asking
    }

    async fn fetch(
        self: Arc<Self>,
        refused: Option<(Token, Option<String>)>,
    ) -> Result<Token, AuthorizeError> {
        let generation = refused.as_ref().map(|(token, _)| token.generation);
        let rejected = refused.map(|(token, challenge)| Rejected {
            token: token.secret,
            challenge,
        });
        let asked = self.authorize.token(&self.server, rejected);
        let late = |_| Err(AuthorizeError::unavailable("it took longer than 30 s"));
        let given = timeout(PATIENCE, asked).await.unwrap_or_else(late);
        let mut held = self.held();
        match given {
            // There is no newer one: what there is stays, and will be refused again.
            Ok(None) if generation.is_some() => Ok(Token::default()),
            Ok(secret) => {
                held.generation += 1;
                let generation = held.generation;
                let token = Token { secret, generation };
                held.token = Some(token.clone());
                Ok(token)
            }
            Err(error) => {
                let refused = matches!(error, AuthorizeError::Refused(_));
                let current = held.token.as_ref().map(|token| token.generation);
                // What was refused is dropped; never what is newer than that.
                if refused && current.is_some() && current == generation {
                    held.token = None;
                }
                Err(error)
            }
        }
    }

    /// The token there is, if there is one.
    pub(super) fn secret(&self) -> Option<SecretString> {
        self.held().token.as_ref()?.secret.clone()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

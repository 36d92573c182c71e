//! HTTP over reqwest and rustls: the one place that opens connections.
//!
//! Limits, proxy, body cap and redirect rules are set here once; everybody
//! else sees [`HttpTransport`].

mod public;

use std::{
    error::Error,
    fmt,
    sync::{Arc, Once},
    time::Duration,
};

use animaworks_core::{
    ResultExt,
    clock::Clock,
    error::chain,
    seams::{Body, HttpTransport, TransportError},
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::redirect;

/// The most redirects that are followed within one host.
const MAX_REDIRECTS: usize = 5;

/// Whom a transport may speak to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Whatever the owner of the organisation configured.
    #[default]
    Anywhere,
    /// Only the public internet: addresses that models and web pages name. Every address is looked at when it is
    /// connected to, and redirects are left to the caller, who sends a new request for each. A proxy resolves names
    /// itself and has to keep its own inside closed.
    Public,
}

/// What a transport allows. A caller's own limits come on top and are usually tighter.
#[derive(Clone, PartialEq, Eq)]
pub struct TransportOptions {
    /// Wait for a connection, TLS included.
    pub connect: Duration,
    /// Wait for the first byte of an answer.
    pub first_byte: Duration,
    /// Wait between two pieces of a body.
    pub idle: Duration,
    /// The longest body, in bytes.
    pub max_body_bytes: u64,
    /// A proxy for everything but loopback, such as `http://proxy.example:3128`.
    pub proxy: Option<String>,
    /// What we call ourselves.
    pub user_agent: String,
    /// Whom it may speak to.
    pub reach: Reach,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            max_body_bytes: 64 * 1024 * 1024,
            proxy: None,
            user_agent: concat!("animaworks/", env!("CARGO_PKG_VERSION")).to_owned(),
            reach: Reach::default(),
        }
    }
}

impl fmt::Debug for TransportOptions {
    // a proxy address may hold a password
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportOptions")
            .field("connect", &self.connect)
            .field("first_byte", &self.first_byte)
            .field("idle", &self.idle)
            .field("max_body_bytes", &self.max_body_bytes)
            .field("proxy", &self.proxy.as_ref().map(|_| "set"))
            .finish()
    }
}

/// [`HttpTransport`] over reqwest. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Transport {
    client: reqwest::Client,
    options: TransportOptions,
    clock: Arc<dyn Clock>,
}

impl Transport {
    /// A transport with these limits. Opens no connection.
    ///
    /// # Errors
    ///
    /// [`TransportError::BadRequest`] when the proxy address is not one or TLS cannot be set up.
    pub fn open(options: TransportOptions, clock: Arc<dyn Clock>) -> Result<Self, TransportError> {
        install_crypto();
        let setup = |error: reqwest::Error| TransportError::BadRequest(chain(&error.without_url()));
        #[allow(clippy::disallowed_methods, reason = "the one place that builds a client")]
        let mut builder = reqwest::Client::builder()
            .connect_timeout(options.connect)
            .redirect(match options.reach {
                Reach::Anywhere => redirect::Policy::custom(within_host),
                Reach::Public => redirect::Policy::none(),
            })
            .tcp_nodelay(true)
            .user_agent(&options.user_agent)
            .no_proxy();
        if options.reach == Reach::Public {
            builder = builder.dns_resolver(Arc::new(public::PublicNames));
        }
        if let Some(proxy) = &options.proxy {
            let direct = reqwest::NoProxy::from_string("localhost,127.0.0.0/8,::1");
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(setup)?.no_proxy(direct));
        }
        Ok(Self { client: builder.build().map_err(setup)?, options, clock })
    }
}

#[async_trait]
impl HttpTransport for Transport {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let host = authority(request.uri())?;
        let request = reqwest::Request::try_from(request).map_err(|error| TransportError::BadRequest(chain(&error)))?;
        if self.options.reach == Reach::Public {
            public::check_host(request.url())
                .map_err(|inside| TransportError::Forbidden { host: host.clone(), reason: inside.to_string() })?;
        }
        let answer = tokio::select! {
            answer = self.client.execute(request) => answer,
            () = self.clock.sleep(self.options.first_byte) => {
                return Err(TransportError::Timeout { host, waiting_for: "first byte" });
            }
        };
        let answer = answer.map_err(|error| from_reqwest(error, &host))?;
        let limit_bytes = self.options.max_body_bytes;
        if answer.content_length().is_some_and(|length| length > limit_bytes) {
            return Err(TransportError::TooLarge { host, limit_bytes });
        }
        let mut head = http::Response::builder().status(answer.status()).version(answer.version());
        if let Some(headers) = head.headers_mut() {
            headers.clone_from(answer.headers());
        }
        let body = self.limited(answer.bytes_stream().boxed(), host);
        head.body(body).map_err(|error| TransportError::BadRequest(chain(&error)))
    }
}

impl Transport {
    /// A body that ends with an error when it idles, breaks or grows too large.
    fn limited(&self, body: stream::BoxStream<'static, reqwest::Result<Bytes>>, host: String) -> Body {
        let (idle, limit_bytes) = (self.options.idle, self.options.max_body_bytes);
        let state = (body, self.clock.clone(), 0_u64, false);
        stream::unfold(state, move |(mut body, clock, seen, over)| {
            let host = host.clone();
            async move {
                if over {
                    return None;
                }
                let piece = tokio::select! {
                    biased;
                    piece = body.next() => piece?.map_err(|error| from_reqwest(error, &host)),
                    () = clock.sleep(idle) => Err(TransportError::Timeout { host: host.clone(), waiting_for: "next bytes" }),
                };
                let seen = seen + piece.as_ref().map_or(0, |bytes| bytes.len() as u64);
                let piece = piece.and_then(|bytes| {
                    if seen > limit_bytes { Err(TransportError::TooLarge { host, limit_bytes }) } else { Ok(bytes) }
                });
                let over = piece.is_err();
                Some((piece, (body, clock, seen, over)))
            }
        })
        .boxed()
    }
}

/// Follows a redirect only to the very same origin: a key never travels to another host.
fn within_host(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if same && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// The host and port of an address, never its user part.
fn authority(uri: &http::Uri) -> Result<String, TransportError> {
    let host = uri.host().ok_or_else(|| TransportError::BadRequest("an address without a host".to_owned()))?;
    Ok(match uri.port_u16() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

fn from_reqwest(error: reqwest::Error, host: &str) -> TransportError {
    // the address may hold a key in its query
    let error = error.without_url();
    let (host, detail) = (host.to_owned(), chain(&error));
    if let Some(inside) = cause::<public::NotPublic>(&error) {
        return TransportError::Forbidden { host, reason: inside.to_string() };
    }
    if error.is_timeout() {
        TransportError::Timeout { host, waiting_for: if error.is_connect() { "connection" } else { "answer" } }
    } else if error.is_connect() {
        TransportError::Connect { host, detail }
    } else if error.is_builder() {
        TransportError::BadRequest(detail)
    } else {
        TransportError::Broken { host, detail }
    }
}

/// A cause of an error, however deep it lies.
fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
}

/// Chooses ring for rustls, once for the process.
fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .map_err(|_already| "another provider is installed")
            .ignore("whoever came first has set it");
    });
}

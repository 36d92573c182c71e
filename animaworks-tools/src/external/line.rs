//! One request to a service: limited in time and size, repeated where that is safe, and its failure in words a
//! model can act on.

use std::{sync::Arc, time::Duration};

use animaworks_core::{
    Clock, ToolContext, ToolError,
    seams::{HttpTransport, TransportError},
    t,
};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::Value;
use url::Url;

use super::{Service, malformed, said};

/// Tries of a request that changes nothing.
const TRIES: u32 = 3;
/// The longest wait between two tries that a model is made to sit through.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The most that is read of an answer, in bytes.
const MOST_BYTES: usize = 5 << 20;

/// A line to one service.
#[derive(Debug)]
pub(super) struct Line {
    transport: Arc<dyn HttpTransport>,
    clock: Arc<dyn Clock>,
    service: Service,
    within: Duration,
}

/// An answer with a good status, or a redirect.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Whether the body was longer than we read.
    pub(super) cut: bool,
}

/// Why a try failed.
enum Failure {
    Wire(TransportError),
    TooSlow,
    Status { status: StatusCode, wait: Option<Duration>, text: String },
}

impl Failure {
    /// Whether another try may go better.
    fn is_passing(&self) -> bool {
        match self {
            Self::Wire(error) => matches!(error, TransportError::Connect { .. } | TransportError::Broken { .. }),
            Self::TooSlow => false,
            Self::Status { status, .. } => *status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error(),
        }
    }
}

impl Line {
    /// A line that waits 30 seconds for each answer.
    pub(super) fn new(transport: Arc<dyn HttpTransport>, clock: Arc<dyn Clock>, service: Service) -> Self {
        Self { transport, clock, service, within: Duration::from_secs(30) }
    }

    /// The same with another patience.
    pub(super) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Asks and reads the whole answer. Only a GET is asked again.
    pub(super) async fn ask(&self, request: Request<Bytes>, cx: &ToolContext) -> Result<Answer, ToolError> {
        let tries = if request.method() == Method::GET { TRIES } else { 1 };
        let mut pause = Duration::from_secs(1);
        for attempt in 1.. {
            let answer = tokio::select! {
                answer = self.once(request.clone()) => answer,
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let failure = match answer {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wait = match &failure {
                Failure::Status { wait: Some(wait), .. } => *wait,
                _ => pause,
            };
            let in_time = self.clock.now() + chrono::Duration::from_std(wait).unwrap_or_default() < cx.deadline;
            if attempt >= tries || !failure.is_passing() || wait > LONGEST_WAIT || !in_time {
                return Err(self.tell(failure, cx));
            }
            tracing::debug!(service = self.service.name, attempt, "asked again");
            tokio::select! {
                () = self.clock.sleep(wait) => pause *= 2,
                () = cx.cancel.cancelled() => return Err(ToolError::Cancelled),
            }
        }
        Err(ToolError::Cancelled)
    }

    /// Asks for JSON.
    pub(super) async fn json<T: serde::de::DeserializeOwned>(
        &self,
        request: Request<Bytes>,
        cx: &ToolContext,
    ) -> Result<T, ToolError> {
        let answer = self.ask(request, cx).await?;
        serde_json::from_slice(&answer.body).map_err(|error| malformed(self.service, &error, cx.locale))
    }

    async fn once(&self, request: Request<Bytes>) -> Result<Answer, Failure> {
        tokio::select! {
            answer = self.read(request) => answer,
            () = self.clock.sleep(self.within) => Err(Failure::TooSlow),
        }
    }

    async fn read(&self, request: Request<Bytes>) -> Result<Answer, Failure> {
        let (head, mut pieces) = self.transport.send(request).await.map_err(Failure::Wire)?.into_parts();
        let (mut body, mut cut) = (Vec::new(), false);
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(Failure::Wire)?);
            if body.len() > MOST_BYTES {
                body.truncate(MOST_BYTES);
                cut = true;
                break;
            }
        }
        if head.status.is_success() || head.status.is_redirection() {
            return Ok(Answer { status: head.status, headers: head.headers, body, cut });
        }
        let seconds = head.headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wait = seconds.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
        let text = String::from_utf8_lossy(&body).chars().take(300).collect();
        Err(Failure::Status { status: head.status, wait, text })
    }

    /// What the model reads. What a service says of its own failure is its words, and is shown as a quotation.
    fn tell(&self, failure: Failure, cx: &ToolContext) -> ToolError {
        let (locale, service) = (cx.locale, self.service);
        let (status, wait, text) = match failure {
            Failure::Wire(error) => return ToolError::failed("ApiError", said(&error, locale)),
            Failure::TooSlow => {
                let seconds = self.within.as_secs();
                let message = t!(locale, "tools.external.too_slow", service = service.name, seconds = seconds);
                return ToolError::failed("Timeout", message);
            }
            Failure::Status { status, wait, text } => (status, wait, text),
        };
        match status.as_u16() {
            401 | 403 => ToolError::Failed {
                error_type: "ApiError",
                message: t!(locale, "tools.external.key_refused", service = service.name, status = status.as_u16()),
                suggestion: Some(t!(
                    locale,
                    "tools.external.no_key_hint",
                    service = service.name,
                    variable = service.variable
                )),
            },
            404 => ToolError::failed("FileNotFound", t!(locale, "tools.external.not_there", service = service.name)),
            429 => {
                let seconds = wait.unwrap_or(LONGEST_WAIT).as_secs();
                let message = t!(locale, "tools.external.too_many", service = service.name, seconds = seconds);
                ToolError::failed("RateLimited", message)
            }
            status => {
                let text = animaworks_core::trust::neutralise_fences(&text);
                let message = t!(locale, "tools.external.status", service = service.name, status = status, text = text);
                ToolError::failed("ApiError", message)
            }
        }
    }
}

/// A path under a configured address.
pub(super) fn address(base: &str, path: &str) -> Result<Url, ToolError> {
    let whole = format!("{}/{path}", base.trim_end_matches('/'));
    Url::parse(&whole).map_err(|error| ToolError::failed("NotConfigured", format!("{base}: {error}")))
}

/// A GET that asks for JSON.
pub(super) fn get(url: &Url) -> Result<http::request::Builder, ToolError> {
    let uri: http::Uri =
        url.as_str().parse().map_err(|error| ToolError::failed("InvalidArguments", format!("{url}: {error}")))?;
    Ok(Request::get(uri).header("accept", "application/json"))
}

/// A request without a body. A key that cannot stand in a header is a failure that does not show it.
pub(super) fn finish(request: http::request::Builder) -> Result<Request<Bytes>, ToolError> {
    request.body(Bytes::new()).map_err(|error| ToolError::failed("NotConfigured", error.to_string()))
}

/// A request with JSON in it, or with nothing.
pub(super) fn with_body(request: http::request::Builder, body: Option<&Value>) -> Result<Request<Bytes>, ToolError> {
    let (request, bytes) = match body {
        Some(body) => (request.header("content-type", "application/json"), Bytes::from(body.to_string())),
        None => (request, Bytes::new()),
    };
    request.body(bytes).map_err(|error| ToolError::failed("NotConfigured", error.to_string()))
}

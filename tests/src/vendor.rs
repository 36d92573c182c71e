//! A vendor's HTTP service on loopback: it answers paths with what a test wrote down and keeps what it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use animaworks_core::tasks::Tasks;
use axum::{
    Router,
    extract::{Request, State},
    http::{Response, StatusCode},
};
use tokio::net::TcpListener;

/// A service that ends with the test.
#[derive(Debug)]
pub struct Vendor {
    port: u16,
    heard: Arc<Heard>,
    _tasks: Tasks,
}

#[derive(Debug)]
struct Heard {
    answers: Vec<(&'static str, u16, String)>,
    asked: Mutex<Vec<String>>,
}

impl Vendor {
    /// Starts one. `answers` are paths, each with a status and a JSON body; other paths are 404.
    ///
    /// # Errors
    ///
    /// When no port can be bound.
    pub async fn start(
        answers: impl IntoIterator<Item = (&'static str, u16, serde_json::Value)>,
    ) -> std::io::Result<Self> {
        let answers = answers.into_iter().map(|(path, status, body)| (path, status, body.to_string())).collect();
        let heard = Arc::new(Heard { answers, asked: Mutex::default() });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let app = Router::new().fallback(answer).with_state(heard.clone());
        let tasks = Tasks::new("vendor");
        tasks.spawn("serve", async move {
            if let Err(error) = axum::serve(listener, app).await {
                crate::llm_server::tracing_free_report(&error);
            }
        });
        Ok(Self { port, heard, _tasks: tasks })
    }

    /// Where it is.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Every request it got, as `METHOD path?query`.
    pub fn asked(&self) -> Vec<String> {
        self.heard.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(State(heard): State<Arc<Heard>>, request: Request) -> Response<String> {
    let asked = format!("{} {}", request.method(), request.uri());
    heard.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let path = request.uri().path();
    let found = heard.answers.iter().find(|(known, _, _)| *known == path);
    let (status, body) = found.map_or((404, "{}".to_owned()), |(_, status, body)| (*status, body.clone()));
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

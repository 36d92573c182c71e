//! A raw server of one answer whose bytes leave when a test lets them.
//!
//! For what a well-behaved HTTP server cannot do: half an event, a stall, a reset.

use std::net::SocketAddr;

use animaworks_core::tasks::Tasks;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// What a gate lets happen.
#[derive(Debug)]
enum Step {
    Send(Vec<u8>),
    Close,
    Reset,
}

/// A server for one connection.
#[derive(Debug)]
pub struct GatedSse {
    address: SocketAddr,
    steps: mpsc::UnboundedSender<Step>,
    _tasks: Tasks,
}

impl GatedSse {
    /// Listens on a free port of loopback. The head of the answer is sent as soon as a request is here.
    ///
    /// # Errors
    ///
    /// When loopback cannot be listened on.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (steps, waiting) = mpsc::unbounded_channel();
        let tasks = Tasks::new("gated sse");
        tasks.spawn("serve", async move {
            // a client that goes away ends the script; the test sees it from the client's side
            drop(serve(listener, waiting).await);
        });
        Ok(Self { address, steps, _tasks: tasks })
    }

    /// The base address to put into a credential.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Lets bytes leave.
    pub fn send(&self, bytes: impl Into<Vec<u8>>) {
        self.step(Step::Send(bytes.into()));
    }

    /// Closes the connection as a finished answer is closed.
    pub fn close(&self) {
        self.step(Step::Close);
    }

    /// Breaks the connection.
    pub fn reset(&self) {
        self.step(Step::Reset);
    }

    fn step(&self, step: Step) {
        let taken = self.steps.send(step);
        assert!(taken.is_ok(), "the connection is gone");
    }
}

async fn serve(listener: TcpListener, mut steps: mpsc::UnboundedReceiver<Step>) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept().await?;
    read_request(&mut stream).await?;
    // no length: the body ends with the connection
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await?;
    while let Some(step) = steps.recv().await {
        match step {
            Step::Send(bytes) => {
                stream.write_all(&bytes).await?;
                stream.flush().await?;
            }
            Step::Close => return stream.shutdown().await,
            Step::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        seen.extend_from_slice(piece.get(..count).unwrap_or_default());
        let text = String::from_utf8_lossy(&seen);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok(());
            }
        }
    }
}

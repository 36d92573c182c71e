//! Our tools for programs that speak MCP.
//!
//! `bridge` opens a private socket for one turn; `server` answers on it; `pipe` is what the
//! program starts: it carries its input and output to the socket and knows nothing else.
//! A client that no turn has started is answered by [`serve_pipes`] on its own pipes.

mod bridge;
pub mod pipe;
mod server;

pub use bridge::SocketBridge;
pub use pipe::TOKEN_VARIABLE;
pub use server::serve_pipes;

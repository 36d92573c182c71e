//! `animaworks mcp --socket P`: carries bytes between a program and a turn.
//!
//! A program starts this for every turn, so it is as little as possible: no runtime, no JSON.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
};

/// The environment variable with the token of a socket.
pub const TOKEN_VARIABLE: &str = "ANIMAWORKS_MCP_TOKEN";

/// Carries bytes until the turn closes the socket. The token is the first line the socket reads.
///
/// # Errors
///
/// When the socket cannot be reached, or breaks.
pub fn run(socket: &Path, token: &str, input: impl Read + Send + 'static, mut output: impl Write) -> io::Result<()> {
    let mut turn = UnixStream::connect(socket)?;
    turn.write_all(token.as_bytes())?;
    turn.write_all(b"\n")?;
    let into_turn = turn.try_clone()?;
    let mut input = input;
    // THREAD: it may stay in a read of its input for ever; it ends with the process, which has nothing else to do
    std::thread::Builder::new().name("mcp input".to_owned()).spawn(move || {
        let mut into_turn = into_turn;
        let copied = io::copy(&mut input, &mut into_turn);
        let closed = into_turn.shutdown(std::net::Shutdown::Write);
        if let Err(error) = copied.and(closed) {
            tracing::debug!(%error, "the turn is over");
        }
    })?;
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        let count = turn.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        output.write_all(buffer.get(..count).unwrap_or_default())?;
        output.flush()?;
    }
}

//! A private socket for each turn.

use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use animaworks_core::{
    HostFault, IdSource, ResultExt, ToolBridge, TurnHost,
    executor::Bridge,
    fs::{create_private_dir, remove_if_exists},
    tasks::Tasks,
};
use async_trait::async_trait;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use super::{pipe::TOKEN_VARIABLE, server};

/// Opens a socket per turn, which only its user can open and only its token unlocks.
#[derive(Debug)]
pub struct SocketBridge {
    program: PathBuf,
    first: Vec<String>,
    directory: PathBuf,
    ids: Arc<dyn IdSource>,
    tasks: Tasks,
}

impl SocketBridge {
    /// A bridge whose programs start `program` with `first` and then `--socket PATH`. The sockets are in
    /// `directory`, which has to be short: a socket's path has at most 107 bytes.
    pub fn new(
        program: impl Into<PathBuf>,
        first: &[&str],
        directory: impl Into<PathBuf>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let first = first.iter().map(|word| (*word).to_owned()).collect();
        let (program, directory) = (program.into(), directory.into());
        Self { program, first, directory, ids, tasks: Tasks::new("tools for programs") }
    }

    /// Where the sockets are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn listen(&self, path: &Path) -> Result<UnixListener, HostFault> {
        create_private_dir(&self.directory).map_err(|error| HostFault::because("make a place for sockets", error))?;
        ours(&self.directory).map_err(|error| HostFault::because("use a place for sockets", error))?;
        let listener = UnixListener::bind(path).map_err(|error| HostFault::because("open a socket", error))?;
        fs_err::set_permissions(path, PermissionsExt::from_mode(0o600))
            .map_err(|error| HostFault::because("close a socket to others", error))?;
        Ok(listener)
    }
}

#[async_trait]
impl ToolBridge for SocketBridge {
    async fn open(&self, host: Arc<dyn TurnHost>) -> Result<Bridge, HostFault> {
        let name = self.ids.fresh();
        let path = self.directory.join(format!("{}.sock", name.get(..12).unwrap_or(&name)));
        let listener = self.listen(&path)?;
        let token: Arc<str> = format!("{}{}", self.ids.fresh(), self.ids.fresh()).into();
        let open = CancellationToken::new();
        let bridge = Bridge {
            command: self.program.clone(),
            args: self.first.iter().cloned().chain(["--socket".to_owned(), path.display().to_string()]).collect(),
            env: BTreeMap::from([(TOKEN_VARIABLE.to_owned(), token.to_string())]),
            close: open.clone().drop_guard(),
        };
        let group = self.tasks.token().clone();
        self.tasks.spawn("a turn's socket", async move {
            let visitors = Tasks::new("visitors of a turn");
            let serve = async {
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => {
                            visitors.spawn("visitor", server::serve(stream, token.clone(), host.clone()));
                        }
                        Err(error) => {
                            tracing::warn!(%error, "a turn's socket takes no more visitors");
                            return;
                        }
                    }
                }
            };
            tokio::select! {
                () = open.cancelled() => {}
                () = group.cancelled() => {}
                () = serve => {}
            }
            drop(visitors);
            remove_if_exists(&path).log_err("remove a turn's socket");
        });
        Ok(bridge)
    }
}

/// Whoever else may write into the directory could put a socket of theirs in our place.
fn ours(directory: &Path) -> io::Result<()> {
    let found = fs_err::symlink_metadata(directory)?;
    if found.is_dir() && found.uid() == nix::unistd::Uid::effective().as_raw() && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let problem = format!("{} is not a directory of this user alone", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

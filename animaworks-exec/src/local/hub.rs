//! Models by their hub id: `local/ORGANISATION/REPOSITORY`, optionally `:PART` of a file's name.
//!
//! A fetched file lies where the engine of local models looks for it, so that it is used by the same name and
//! never fetched twice.

use std::path::{Path, PathBuf};

use animaworks_core::{
    ExecError,
    error::chain,
    fs::{FileError, create_dir},
};
use hf_hub::api::{
    Progress,
    sync::{ApiBuilder, ApiError, ApiRepo},
};

/// The quantisation that is taken when nobody names one: small, and hardly worse.
const USUAL: &str = "Q4_K_M";

/// What a download tells while it runs: bytes so far, bytes in all.
pub type OnBytes<'a> = dyn FnMut(u64, u64) + Send + 'a;

/// A hub: where models are fetched from, and where they are kept.
#[derive(Debug, Clone)]
pub struct Hub {
    models: PathBuf,
    endpoint: Option<String>,
}

impl Hub {
    /// The public hub, keeping models in `models`.
    pub fn new(models: &Path) -> Self {
        Self { models: models.to_owned(), endpoint: None }
    }

    /// The same behind another address.
    #[must_use]
    pub fn at(self, endpoint: impl Into<String>) -> Self {
        Self { endpoint: Some(endpoint.into()), ..self }
    }

    /// Whether a model's name is a hub id.
    pub fn is_id(model: &str) -> bool {
        let name = model.strip_prefix("local/").unwrap_or(model);
        name.split('/').count() == 2 && name.split('/').all(|part| !part.is_empty() && part != "..")
    }

    /// Fetches a model that is not here yet, and gives its file. Blocks for as long as the download takes; what was
    /// fetched of a broken download is taken up again.
    ///
    /// # Errors
    ///
    /// [`ExecError::Unreachable`], or [`ExecError::UnknownModel`] when the hub has no such model or it holds no GGUF file.
    pub fn fetch(&self, model: &str, on_bytes: &mut OnBytes<'_>) -> Result<PathBuf, ExecError> {
        let name = model.strip_prefix("local/").unwrap_or(model);
        let (id, part) = name.split_once(':').unwrap_or((name, USUAL));
        let unknown = || ExecError::UnknownModel { engine: "hub".to_owned(), model: model.to_owned() };
        if !Self::is_id(id) {
            return Err(unknown());
        }
        let mut builder =
            ApiBuilder::new().with_progress(false).with_cache_dir(self.models.join(".hub")).with_token(None);
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint.clone());
        }
        let repository = builder.build().map_err(failed)?.model(id.to_owned());
        let file = choose(&repository, part)?.ok_or_else(unknown)?;
        let fetched =
            repository.download_with_progress(&file, Meter { on_bytes, done: 0, total: 0 }).map_err(failed)?;
        self.keep(id, &file, &fetched).map_err(|error| ExecError::Other(Box::new(error)))
    }

    /// Gives a fetched file its place; the bytes stay in one copy.
    fn keep(&self, id: &str, file: &str, fetched: &Path) -> Result<PathBuf, FileError> {
        let place = self.models.join(id).join(file.rsplit('/').next().unwrap_or(file));
        if place.is_file() {
            return Ok(place);
        }
        if let Some(parent) = place.parent() {
            create_dir(parent)?;
        }
        let blob = fs_err::canonicalize(fetched).map_err(|error| FileError::io("open", fetched, error))?;
        fs_err::hard_link(&blob, &place).map_err(|error| FileError::io("link", &place, error))?;
        Ok(place)
    }
}

/// The GGUF file of a repository: the one whose name has `part` in it, else the first.
fn choose(repository: &ApiRepo, part: &str) -> Result<Option<String>, ExecError> {
    let files = repository.info().map_err(failed)?.siblings;
    let mut files: Vec<String> = files.into_iter().map(|file| file.rfilename).filter(|name| is_gguf(name)).collect();
    files.sort();
    let named = files.iter().position(|name| name.to_lowercase().contains(&part.to_lowercase()));
    let at = named.unwrap_or(0);
    Ok((at < files.len()).then(|| files.swap_remove(at)))
}

fn is_gguf(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

fn failed(error: ApiError) -> ExecError {
    ExecError::Unreachable { engine: "hub".to_owned(), detail: chain(&error) }
}

/// Counts a download.
struct Meter<'a, 'b> {
    on_bytes: &'a mut OnBytes<'b>,
    done: u64,
    total: u64,
}

impl Progress for Meter<'_, '_> {
    fn init(&mut self, size: usize, _filename: &str) {
        self.total = size as u64;
        (self.on_bytes)(0, self.total);
    }

    fn update(&mut self, size: usize) {
        self.done += size as u64;
        (self.on_bytes)(self.done, self.total);
    }

    fn finish(&mut self) {
        tracing::debug!(bytes = self.done, "fetched a model");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use animaworks_core::ResultExt;

    use super::*;

    /// A hub with one repository of two files, speaking just enough of its protocol.
    fn hub(bytes: &'static [u8]) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let range = headers
                    .iter()
                    .find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
                if request.contains("/api/models/") {
                    let body = r#"{"sha":"abc","siblings":[{"rfilename":"README.md"},{"rfilename":"m-Q8_0.gguf"},{"rfilename":"m-Q4_K_M.gguf"}]}"#;
                    write!(
                        stream,
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    )
                    .unwrap();
                    continue;
                }
                let (from, to) = match range.as_deref().and_then(|range| range.split_once('-')) {
                    Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap_or(bytes.len() - 1)),
                    None => (0, bytes.len() - 1),
                };
                let part = &bytes[from..=to.min(bytes.len() - 1)];
                write!(
                    stream,
                    "HTTP/1.1 206 Partial Content\r\nx-repo-commit: abc\r\netag: \"tag\"\r\naccept-ranges: bytes\r\n\
                     content-range: bytes {from}-{to}/{}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    bytes.len(),
                    part.len()
                )
                .unwrap();
                // a reader that only wanted the headers may be gone
                stream.write_all(part).ignore("the reader may be gone");
            }
        });
        format!("http://{address}")
    }

    #[test]
    fn a_model_is_fetched_once_and_found_by_its_id() {
        let models = tempfile::tempdir().unwrap();
        let endpoint = hub(b"GGUF and some weights");
        let mut seen = Vec::new();
        let place = Hub::new(models.path())
            .at(&endpoint)
            .fetch("local/acme/tiny-GGUF", &mut |done, total| seen.push((done, total)))
            .unwrap();
        assert_eq!(place, models.path().join("acme/tiny-GGUF/m-Q4_K_M.gguf"));
        assert_eq!(fs_err::read(&place).unwrap(), b"GGUF and some weights");
        assert_eq!(seen.last().map(|(_, total)| *total), Some(21));
        let named = Hub::new(models.path()).at(&endpoint).fetch("local/acme/tiny-GGUF:Q8", &mut |_, _| {}).unwrap();
        assert!(named.ends_with("m-Q8_0.gguf"));
    }

    #[test]
    fn a_hub_that_is_not_there_is_unreachable() {
        let models = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let hub = Hub::new(models.path()).at(format!("http://127.0.0.1:{port}"));
        assert!(matches!(hub.fetch("acme/tiny", &mut |_, _| {}), Err(ExecError::Unreachable { .. })));
        assert!(matches!(hub.fetch("just-a-name", &mut |_, _| {}), Err(ExecError::UnknownModel { .. })));
    }
}

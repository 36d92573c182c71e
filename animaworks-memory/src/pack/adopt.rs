//! An Anima takes a memory as its knowledge, and gives its knowledge back as one.
//!
//! Both are copies. What an Anima has made of a file since is never written over, and what it
//! learned from outside is never handed on.

use std::path::{Path, PathBuf};

use animaworks_core::{
    MemoryError,
    frontmatter::Document,
    fs::{self, Privacy},
    trust::Origin,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Pack, import::Imported, walk};

/// Where adopted files stand, below the knowledge of the Anima.
const PLACE: &str = "pack";
/// The key of a head under which the hash of an adopted text stands.
const HASH: &str = "pack_hash";

/// What an adoption did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// Files that are new or newer than what was adopted before.
    pub written: Vec<PathBuf>,
    /// Files that were adopted before and are as they were.
    pub known: usize,
    /// Files that the Anima has changed since; they were left as they are.
    pub changed: Vec<PathBuf>,
    /// Files that say nothing.
    pub empty: Vec<PathBuf>,
}

impl Pack {
    /// Copies the memory into a directory of knowledge, each file with a head that says where it comes from:
    /// a person handed it over, so it is not taken at its word.
    ///
    /// # Errors
    ///
    /// [`MemoryError::File`]; what was written by then stays, and the next adoption does the rest.
    pub fn adopt_into(&self, knowledge: &Path) -> Result<Adopted, MemoryError> {
        let mut done = Adopted::default();
        for dir in self.existing() {
            for found in walk::files(dir) {
                let text = fs::read_text(&found.path)?.replace("\r\n", "\n");
                let body = Document::parse(&text).body;
                if body.trim().is_empty() {
                    done.empty.push(found.path);
                    continue;
                }
                let target = knowledge.join(PLACE).join(&found.source);
                let hash = hash(&body);
                if let Some(old) = fs::read_text_if_exists(&target)? {
                    let old = Document::parse(&old);
                    let adopted = old.text(HASH);
                    if adopted != hash_of(&old) {
                        done.changed.push(target);
                        continue;
                    }
                    if adopted == hash {
                        done.known += 1;
                        continue;
                    }
                }
                let mut page = Document::new(body);
                page.set("created_at", self.now.to_rfc3339());
                page.set("origin", Origin::HUMAN);
                page.set("source", found.path.display().to_string());
                page.set(HASH, hash);
                fs::write_atomic(&target, page.to_string().as_bytes(), Privacy::Normal)?;
                done.written.push(target);
            }
        }
        Ok(done)
    }

    /// Takes the knowledge of an Anima into this memory, as [`Pack::import`] takes any notes: block by block,
    /// each once, nothing secret, and nothing that came from outside.
    ///
    /// # Errors
    ///
    /// As [`Pack::import`].
    ///
    /// # Cancel safety
    ///
    /// As [`Pack::import`].
    pub async fn take_from(&self, knowledge: &Path, dry: bool) -> Result<Imported, MemoryError> {
        self.import(&[knowledge.to_owned()], dry).await
    }
}

fn hash(body: &str) -> String {
    Sha256::digest(body.trim().as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of(page: &Document) -> String {
    hash(&page.body)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::pack::Settings;

    #[tokio::test]
    async fn a_memory_is_adopted_once_and_given_back_without_what_came_from_outside() {
        let dir = tempfile::tempdir().unwrap();
        let (own, knowledge) = (dir.path().join("own"), dir.path().join("animas/sakura/knowledge"));
        let put = |path: PathBuf, text: &str| fs::write_atomic(&path, text.as_bytes(), Privacy::Normal).unwrap();
        let lamp = "## 2026-05-01 Lamp\nIt stands in the hall.\n\n";
        put(own.join("lamp.md"), lamp);
        put(own.join("tools/key.md"), "---\nname: x\n---\n## 2026-05-02 鍵\n棚の中。\n");
        put(own.join("empty.md"), "\n");
        let now = DateTime::parse_from_rfc3339("2026-06-12T10:00:00+09:00").unwrap();
        let pack = Pack::over(vec![own.clone()], Settings::default(), now);
        let first = pack.adopt_into(&knowledge).unwrap();
        assert_eq!((first.written.len(), first.known, first.empty.len()), (2, 0, 1));
        let page = Document::parse(&fs::read_text(&knowledge.join("pack/tools/key.md")).unwrap());
        assert_eq!((page.text("origin").as_str(), page.body.trim()), ("human", "## 2026-05-02 鍵\n棚の中。"));
        assert_eq!(pack.adopt_into(&knowledge).unwrap().known, 2);
        // the Anima changes one, the pack changes both
        let changed = fs::read_text(&knowledge.join("pack/lamp.md")).unwrap().replace("hall", "cellar");
        put(knowledge.join("pack/lamp.md"), &changed);
        put(own.join("lamp.md"), "## 2026-05-01 Lamp\nIt stands in the attic.\n");
        put(own.join("tools/key.md"), "## 2026-05-02 鍵\n机の中。\n");
        let second = pack.adopt_into(&knowledge).unwrap();
        assert_eq!((second.written.len(), second.changed.len()), (1, 1));
        assert_eq!(fs::read_text(&knowledge.join("pack/lamp.md")).unwrap(), changed);

        put(
            knowledge.join("own.md"),
            "---\ncreated_at: 2026-04-01T00:00:00Z\n---\n\nThe printer is on the third floor.\n",
        );
        put(knowledge.join("web.md"), "---\norigin: external_web\n---\n\nBuy now.\n");
        put(knowledge.join("old.md"), "---\nvalid_until: 2026-01-01\n---\n\nThe printer is gone.\n");
        let given = pack.take_from(&knowledge, false).await.unwrap();
        let reasons: Vec<_> = given.left.iter().map(|left| left.reason).collect();
        assert_eq!((given.taken, reasons), (2, vec!["superseded", "untrusted"]), "{given:#?}");
        let text = fs::read_text(&own.join("imported/sakura/own.md")).unwrap();
        assert_eq!(text, "## 2026-04-01 own\nThe printer is on the third floor.\n\n");
        assert_eq!(pack.take_from(&knowledge, false).await.unwrap().taken, 0);
    }
}

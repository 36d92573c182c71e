//! Letters and boards as files (memory spec §10).

mod boards;
mod history;
mod letter;

pub use boards::BoardMeta;
pub use history::{DirectMessage, DmQuery};

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, FixedOffset};
use chrono_tz::Tz;
use futures_util::stream::BoxStream;
use serde_json::Value;

use super::{
    bell::Bells,
    claims::{Desk, Leases, Note, file_name, later},
};
use crate::{
    clock::Clock,
    fs::{self, Lock, Privacy},
    ids::{AnimaName, BoardName, IdSource, LeaseId, MessageId},
    layout::DataDir,
    message::Message,
    seams::{BoardPost, Claim, PostError, PostOffice, Settled},
};

/// A letter is set aside after so many claims that ended without a word.
const MAX_CRASHES: u32 = 5;

/// A post office on one machine: a directory for each inbox, a file for each letter and each board.
///
/// Clones share their bells and claims.
#[derive(Debug, Clone)]
pub struct FilePostOffice {
    data: DataDir,
    zone: Tz,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    bells: Arc<Bells>,
    leases: Arc<Leases<AnimaName>>,
}

impl FilePostOffice {
    /// The post office of an organisation.
    pub fn new(data: DataDir, zone: Tz, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { data, zone, clock, ids, bells: Arc::default(), leases: Arc::default() }
    }

    /// Ends all claims on an inbox. For the start of a process that alone serves it: whoever had them is gone.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn release_all(&self, who: &AnimaName) -> Result<usize, PostError> {
        let _held = self.lock(who)?;
        Ok(self.desk(who).release_all()?)
    }

    /// How many letters wait or are being handled.
    ///
    /// # Errors
    ///
    /// [`PostError::File`].
    pub fn unread(&self, who: &AnimaName) -> Result<usize, PostError> {
        let desk = self.desk(who);
        Ok(desk.waiting_files()?.len() + desk.taken_files()?.len())
    }

    fn desk(&self, who: &AnimaName) -> Desk {
        Desk::new(self.data.inbox(who), "quarantine")
    }

    fn lock(&self, who: &AnimaName) -> Result<Lock, PostError> {
        Ok(Lock::wait(&self.data.run().join(format!("inbox_{who}.lock")))?)
    }

    fn post_blocking(&self, letter: &Message, to: &AnimaName) -> Result<(), PostError> {
        if !self.data.anima(to).root().is_dir() {
            return Err(PostError::UnknownRecipient { name: to.to_string(), near: self.near(to)? });
        }
        let name = letter::file_name(&letter.id);
        let desk = self.desk(to);
        let _held = self.lock(to)?;
        let places = [desk.waiting.clone(), desk.processing(), desk.waiting.join("processed"), desk.failed()];
        if places.iter().any(|place| place.join(&name).exists()) {
            return Ok(());
        }
        let value =
            letter::to_value(letter, to, letter.at.unwrap_or_else(|| self.clock.now()).with_timezone(&self.zone));
        fs::write_json(&desk.waiting.join(name), &value, Privacy::Normal)?;
        self.bells.ring(desk.waiting);
        Ok(())
    }

    /// Names that look like one that is not there.
    fn near(&self, name: &AnimaName) -> Result<Vec<String>, PostError> {
        let known = super::list(&self.data.animas())?;
        let known = known.iter().filter(|path| path.is_dir()).map(|path| file_name(path));
        Ok(known.filter(|known| looks_like(known, name.as_str())).take(5).collect())
    }

    fn claim_blocking(&self, who: &AnimaName, limit: usize, lease: Duration) -> Result<Vec<Claim<Message>>, PostError> {
        let desk = self.desk(who);
        let _held = self.lock(who)?;
        let now = self.clock.now();
        let mut ready = Vec::new();
        for (path, taken) in desk
            .taken_files()?
            .into_iter()
            .map(|path| (path, true))
            .chain(desk.waiting_files()?.into_iter().map(|path| (path, false)))
        {
            let name = file_name(&path);
            let mut note = desk.note(&name)?.unwrap_or_default();
            if note.until > now {
                continue;
            }
            if taken {
                note.crashes += 1;
                if note.crashes >= MAX_CRASHES {
                    desk.retire(&name, &desk.failed(), Some("claimed again and again, and never settled"))?;
                    continue;
                }
            }
            match fs::read_json::<Value>(&path) {
                Ok(value) => match letter::from_value(value, &name, self.zone) {
                    Ok(message) => ready.push((message, name, note)),
                    Err(problem) => desk.retire(&name, &desk.failed(), Some(&problem))?,
                },
                Err(error @ fs::FileError::Syntax { .. }) => {
                    desk.retire(&name, &desk.failed(), Some(&error.to_string()))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        ready.sort_by(|(a, a_name, _), (b, b_name, _)| (a.at, a_name).cmp(&(b.at, b_name)));
        ready.truncate(limit);
        let mut claims = Vec::new();
        for (item, name, note) in ready {
            let id = self.ids.lease();
            let note = Note {
                lease: id.to_string(),
                until: later(now, lease),
                attempts: note.attempts + 1,
                crashes: note.crashes,
            };
            desk.take(&name, &note)?;
            self.leases.remember(id.clone(), who.clone(), name);
            claims.push(Claim { lease: id, item, attempt: note.attempts });
        }
        Ok(claims)
    }

    fn settle_blocking(&self, lease: &LeaseId, how: &Settled) -> Result<(), PostError> {
        let unknown = || PostError::UnknownLease { lease: lease.clone() };
        let (who, name) = self.leases.forget(lease).ok_or_else(unknown)?;
        let desk = self.desk(&who);
        let _held = self.lock(&who)?;
        let note = desk.note(&name)?.filter(|note| note.lease == lease.as_str()).ok_or_else(unknown)?;
        let settled = match how {
            Settled::Done => desk.retire(&name, &desk.waiting.join("processed"), None),
            Settled::Retry { after } => {
                let note = Note { lease: String::new(), until: later(self.clock.now(), *after), ..note };
                desk.put_back(&name, &note)
            }
            Settled::Failed { reason } => desk.retire(&name, &desk.failed(), Some(reason)),
        };
        if settled.is_err() {
            // settling it again must stay possible
            self.leases.remember(lease.clone(), who, name);
        }
        Ok(settled?)
    }
}

/// Whether two names differ by a typing mistake or one begins with the other.
fn looks_like(known: &str, wanted: &str) -> bool {
    let same_start = known.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    let same_end = known.chars().rev().zip(wanted.chars().rev()).take_while(|(a, b)| a == b).count();
    let longer = known.len().max(wanted.len());
    same_start >= 3 || (same_start + same_end) * 3 >= longer * 2
}

#[async_trait]
impl PostOffice for FilePostOffice {
    async fn post(&self, letter: Message, to: &AnimaName) -> Result<MessageId, PostError> {
        let (this, to, id) = (self.clone(), to.clone(), letter.id.clone());
        fs::blocking(move || this.post_blocking(&letter, &to)).await?;
        Ok(id)
    }

    async fn claim(&self, who: &AnimaName, limit: usize, lease: Duration) -> Result<Vec<Claim<Message>>, PostError> {
        let (this, who) = (self.clone(), who.clone());
        fs::blocking(move || this.claim_blocking(&who, limit, lease)).await
    }

    async fn settle(&self, lease: &LeaseId, how: Settled) -> Result<(), PostError> {
        let (this, lease) = (self.clone(), lease.clone());
        fs::blocking(move || this.settle_blocking(&lease, &how)).await
    }

    async fn publish(&self, board: &BoardName, post: BoardPost) -> Result<(), PostError> {
        let (this, board) = (self.clone(), board.clone());
        fs::blocking(move || this.publish_blocking(&board, &post)).await
    }

    async fn board(
        &self,
        board: &BoardName,
        reader: &AnimaName,
        before: Option<DateTime<FixedOffset>>,
        limit: usize,
    ) -> Result<Vec<BoardPost>, PostError> {
        let (this, board, reader) = (self.clone(), board.clone(), reader.clone());
        fs::blocking(move || this.board_blocking(&board, &reader, before, limit)).await
    }

    async fn boards(&self, reader: &AnimaName) -> Result<Vec<BoardName>, PostError> {
        let (this, reader) = (self.clone(), reader.clone());
        fs::blocking(move || this.boards_blocking(&reader)).await
    }

    fn arrivals(&self, who: &AnimaName) -> BoxStream<'static, ()> {
        self.bells.listen(self.data.inbox(who), self.clock.clone())
    }
}

#[cfg(test)]
mod tests;

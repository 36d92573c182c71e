//! Finding a piece: words by the table of words, runs of Japanese by trigrams, what is left by reading.
//!
//! The tables only say where a term occurs, newest first; what is best is decided here, from the texts themselves.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use animaworks_core::{MemoryError, ResultExt};
use chrono::NaiveDate;
use serde::Serialize;
use sqlx::{AssertSqlSafe, Row, SqliteConnection};

use super::{
    Pack,
    shadow::Shadow,
    terms::{Term, joined, question},
};
use crate::{
    index::{failed, is_corrupt},
    text::{normalize::fold, terms::query_terms},
};

/// Newest matches of one list that are looked at.
const LOOK_AT: i64 = 120;
/// Newest matches in headings that are looked at beside them.
const LOOK_AT_HEADINGS: i64 = 40;
/// Newest matches of one term when no piece has all of them.
const LOOK_AT_EACH: i64 = 40;
/// Reciprocal rank fusion's constant.
const RRF: f64 = 60.0;

/// A piece that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The file, relative to its memory directory.
    pub source: String,
    /// The file itself.
    pub path: PathBuf,
    /// The first line, from 1.
    pub line: i64,
    /// The last line.
    pub end_line: i64,
    /// The heading it stands under.
    pub heading: String,
    /// Its text.
    pub content: String,
    /// The day of its heading or of its file's name.
    pub date: Option<NaiveDate>,
    /// How good it is; only to compare hits of one search.
    pub score: f64,
}

impl Pack {
    /// The best `limit` pieces for a question. The index is used as it is; see [`Pack::reindex`].
    ///
    /// # Errors
    ///
    /// [`MemoryError::Index`].
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn search(&self, question: &str, limit: usize) -> Result<Vec<Hit>, MemoryError> {
        let mut hits = Vec::new();
        if question.trim().is_empty() {
            return Ok(hits);
        }
        for dir in self.existing() {
            let found = match self.search_dir(dir, question).await {
                Err(error) if is_corrupt(&error) => {
                    Shadow::discard(dir, &self.stamp(), &error)?;
                    self.reindex_dir(dir).await?;
                    self.search_dir(dir, question).await?
                }
                found => found?,
            };
            hits.extend(found);
        }
        hits.sort_by(better);
        hits.truncate(limit);
        Ok(hits)
    }

    async fn search_dir(&self, dir: &Path, text: &str) -> Result<Vec<Hit>, MemoryError> {
        let mut shadow = Shadow::open(dir, &self.stamp()).await?;
        let terms = question(text);
        let wanted = terms.iter().map(Wanted::of).collect();
        let finder = Finder { dir, phrase: fold(text.trim()).into_owned(), terms, wanted };
        let found = finder.find(&mut shadow.db, text.trim()).await.map_err(failed("search"));
        shadow.close().await;
        found
    }
}

/// The better hit first: score, then the newer one, then by place.
fn better(a: &Hit, b: &Hit) -> Ordering {
    b.score
        .total_cmp(&a.score)
        .then_with(|| b.date.cmp(&a.date))
        .then_with(|| a.path.cmp(&b.path))
        .then_with(|| a.line.cmp(&b.line))
}

#[derive(Debug)]
struct Finder<'a> {
    dir: &'a Path,
    phrase: String,
    terms: Vec<Term>,
    /// What is looked for in a text, one for each term.
    wanted: Vec<Wanted>,
}

/// A piece with its texts folded once: they are looked at many times.
#[derive(Debug)]
struct Candidate {
    hit: Hit,
    text: String,
    heading: String,
}

/// What a term looks like in a folded text: a run as it is, a word also with other endings.
#[derive(Debug)]
struct Wanted {
    stem: String,
    /// A stem such as `polici` is not part of every form of its word.
    shorter: String,
}

impl Wanted {
    fn of(term: &Term) -> Self {
        let stem = match term {
            Term::Run(_) => None,
            Term::Word(word) => query_terms(word).into_iter().next().map(|term| term.key),
        };
        let stem = stem.unwrap_or_else(|| term.text().to_owned());
        let shorter = stem.trim_end_matches('i').to_owned();
        Self { stem, shorter }
    }

    fn count_in(&self, text: &str) -> usize {
        let count = text.matches(self.stem.as_str()).count();
        if count == 0 && self.shorter != self.stem { text.matches(self.shorter.as_str()).count() } else { count }
    }

    fn is_in(&self, text: &str) -> bool {
        text.contains(self.stem.as_str()) || text.contains(self.shorter.as_str())
    }
}

impl Finder<'_> {
    async fn find(&self, db: &mut SqliteConnection, text: &str) -> Result<Vec<Hit>, sqlx::Error> {
        let mut pieces: BTreeMap<i64, Candidate> = BTreeMap::new();
        let mut lists: Vec<Vec<i64>> = Vec::new();
        if !self.terms.is_empty() {
            let all = joined(self.terms.iter().map(Term::in_words));
            let mut words = matches(db, "chunks_fts", &all, LOOK_AT).await?;
            words.extend(matches(db, "chunks_fts", &format!("heading : ({all})"), LOOK_AT_HEADINGS).await?);
            lists.push(words);
            let trigrams: Vec<String> = self.terms.iter().filter_map(Term::in_trigrams).collect();
            if !trigrams.is_empty() {
                lists.push(matches(db, "chunks_fts_trigram", &joined(trigrams.into_iter()), LOOK_AT).await?);
            }
            self.load(db, &lists, &mut pieces).await?;
            // pairs and trigrams of a run may stand apart in a text; only the run itself counts
            pieces.retain(|_, piece| self.has_all(piece));
        }
        if pieces.is_empty() && self.terms.len() > 1 {
            lists.clear();
            for term in &self.terms {
                lists.push(matches(db, "chunks_fts", &term.in_words(), LOOK_AT_EACH).await?);
            }
            self.load(db, &lists, &mut pieces).await?;
        }
        // what the table of words has for every text needs no reading of the texts
        if pieces.is_empty() && (self.terms.is_empty() || !self.terms.iter().all(Term::is_complete)) {
            lists = vec![substring(db, text).await?];
            self.load(db, &lists, &mut pieces).await?;
        }
        Ok(self.rank(&lists, pieces))
    }

    async fn load(
        &self,
        db: &mut SqliteConnection,
        lists: &[Vec<i64>],
        pieces: &mut BTreeMap<i64, Candidate>,
    ) -> Result<(), sqlx::Error> {
        let mut ids: Vec<i64> = lists.iter().flatten().copied().filter(|id| !pieces.contains_key(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let list = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let select = "SELECT id, source, heading, content, start_line, end_line, date FROM chunks WHERE id IN";
        for row in sqlx::query(AssertSqlSafe(format!("{select} ({list})"))).persistent(false).fetch_all(db).await? {
            let source: String = row.try_get(1)?;
            let date: Option<String> = row.try_get(6)?;
            let hit = Hit {
                path: self.dir.join(&source),
                source,
                heading: row.try_get(2)?,
                content: row.try_get(3)?,
                line: row.try_get(4)?,
                end_line: row.try_get(5)?,
                date: date.and_then(|date| date.parse::<NaiveDate>().ignore("only the ranking of equals needs it")),
                score: 0.0,
            };
            let (text, heading) = (fold(&hit.content).into_owned(), fold(&hit.heading).into_owned());
            pieces.insert(row.try_get(0)?, Candidate { hit, text, heading });
        }
        Ok(())
    }

    fn has_all(&self, piece: &Candidate) -> bool {
        self.wanted.iter().all(|wanted| wanted.is_in(&piece.text))
    }

    /// Both lists, each in the order of what its pieces say about the question, fused by rank.
    fn rank(&self, lists: &[Vec<i64>], pieces: BTreeMap<i64, Candidate>) -> Vec<Hit> {
        let rarity: Vec<f64> =
            self.terms.iter().zip(&self.wanted).map(|(term, wanted)| rarity(term, wanted, &pieces)).collect();
        let says: HashMap<i64, f64> = pieces.iter().map(|(id, piece)| (*id, self.says(piece, &rarity))).collect();
        let value = |id: &i64| says.get(id).copied().unwrap_or_default();
        let mut fused: HashMap<i64, f64> = HashMap::new();
        for list in lists {
            let mut ranked: Vec<&i64> = list.iter().filter(|id| pieces.contains_key(id)).collect();
            ranked.sort_unstable();
            ranked.dedup();
            ranked.sort_by(|a, b| value(b).total_cmp(&value(a)));
            let mut rank = 0.0;
            let mut above = f64::INFINITY;
            for id in ranked {
                // equals share a rank, so that the date decides between them
                if value(id) < above {
                    rank += 1.0;
                    above = value(id);
                }
                *fused.entry(*id).or_insert(0.0) += 1.0 / (RRF + rank);
            }
        }
        let mut hits: Vec<Hit> = pieces
            .into_iter()
            .map(|(id, Candidate { hit, .. })| Hit {
                score: fused.get(&id).copied().unwrap_or_default() + value(&id) / 1000.0,
                ..hit
            })
            .collect();
        hits.sort_by(better);
        hits
    }

    fn says(&self, piece: &Candidate, rarity: &[f64]) -> f64 {
        let length = 0.75 + piece.text.chars().count() as f64 / 3000.0;
        let mut value = 0.0;
        for (wanted, weight) in self.wanted.iter().zip(rarity) {
            let count = wanted.count_in(&piece.text) as f64;
            value += weight * count / (count + length);
            if wanted.is_in(&piece.heading) {
                value += weight * 0.5;
            }
        }
        if self.terms.len() > 1 && piece.text.contains(&self.phrase) {
            value += 1.0;
        }
        value
    }
}

/// A term that few of the pieces have says more.
fn rarity(term: &Term, wanted: &Wanted, pieces: &BTreeMap<i64, Candidate>) -> f64 {
    let having = pieces.values().filter(|piece| wanted.is_in(&piece.text)).count();
    (1.0 + pieces.len() as f64 / (1.0 + having as f64)).ln() * (term.text().chars().count() as f64).sqrt()
}

/// The newest pieces that an expression finds.
async fn matches(db: &mut SqliteConnection, table: &str, wanted: &str, limit: i64) -> Result<Vec<i64>, sqlx::Error> {
    let select = format!("SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC LIMIT ?");
    let rows = sqlx::query(AssertSqlSafe(select)).bind(wanted).bind(limit).fetch_all(db).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// The newest pieces that have a text as it stands: for what is no word at all.
async fn substring(db: &mut SqliteConnection, text: &str) -> Result<Vec<i64>, sqlx::Error> {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let select = "SELECT id FROM chunks WHERE content LIKE ? ESCAPE '\\' ORDER BY id DESC LIMIT ?";
    let rows = sqlx::query(select).bind(format!("%{escaped}%")).bind(LOOK_AT).fetch_all(db).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

//! SQLite's own full-text search with each of its tokenisers.

use std::{collections::BTreeSet, sync::Arc};

use animaworks_core::Clock;
use sqlx::{AssertSqlSafe, Connection, Row, sqlite::SqliteConnection};
use unicode_normalization::UnicodeNormalization;

use super::Ranked;
use crate::bench::{BenchError, data::Store};

/// Ranks with `bm25()` over a table in memory.
pub(super) async fn rank(
    texts: &[String],
    tokenize: &'static str,
    store: &Store,
    clock: &Arc<dyn Clock>,
    depth: usize,
) -> Result<Ranked, BenchError> {
    let begun = clock.elapsed();
    let mut db = SqliteConnection::connect("sqlite::memory:").await?;
    let table = format!("CREATE VIRTUAL TABLE f USING fts5(t, tokenize='{tokenize}')");
    sqlx::query(AssertSqlSafe(table)).execute(&mut db).await?;
    let mut filling = db.begin().await?;
    for (at, text) in texts.iter().enumerate() {
        sqlx::query("INSERT INTO f(rowid, t) VALUES(?, ?)")
            .bind(i64::try_from(at).unwrap_or(i64::MAX))
            .bind(text)
            .execute(&mut *filling)
            .await?;
    }
    filling.commit().await?;
    let mut ranked = Ranked { index_s: clock.elapsed().saturating_sub(begun).as_secs_f64(), ..Ranked::default() };
    for question in &store.questions {
        let begun = clock.elapsed();
        let asked = matching(&question.text, tokenize == "trigram");
        let mut ranking = Vec::new();
        if !asked.is_empty() {
            let rows = sqlx::query("SELECT rowid FROM f WHERE f MATCH ? ORDER BY bm25(f), rowid LIMIT ?")
                .bind(asked)
                .bind(i64::try_from(depth).unwrap_or(i64::MAX))
                .fetch_all(&mut db)
                .await?;
            for row in rows {
                let at: i64 = row.try_get(0)?;
                ranking.extend(usize::try_from(at));
            }
        }
        ranked.search_ms.push(clock.elapsed().saturating_sub(begun).as_secs_f64() * 1000.0);
        ranked.rankings.push(ranking);
    }
    db.close().await?;
    Ok(ranked)
}

/// Any of the words, or of the threes of characters in them, each as a phrase.
fn matching(question: &str, threes: bool) -> String {
    let folded: String = question.nfkc().collect::<String>().to_lowercase();
    let mut terms: Vec<String> = Vec::new();
    for word in folded.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()) {
        if threes {
            let chars: Vec<char> = word.chars().collect();
            terms.extend(chars.windows(3).map(|three| three.iter().collect::<String>()));
        } else {
            terms.push(word.to_owned());
        }
    }
    let mut seen = BTreeSet::new();
    terms.retain(|term| seen.insert(term.clone()));
    terms.iter().map(|term| format!("\"{term}\"")).collect::<Vec<_>>().join(" OR ")
}

//! Gives any program a memory: `animaworks-memory` alone, over one directory of Markdown.
//!
//! `cargo run --example memory_only`

use std::sync::Arc;

use animaworks_core::{
    AnimaName, DataDir, MemoryStore, MemoryWrite, Origin, Query, SystemClock, ids::MemoryPath, memory::WriteMode,
};
use animaworks_memory::{FileMemory, MemoryOptions};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?; // any directory will do, and it can be kept
    let dir = DataDir::new(place.path()).anima(&AnimaName::new("wren")?);
    let memory =
        FileMemory::open(dir, chrono_tz::Asia::Tokyo, Arc::new(SystemClock::new()), MemoryOptions::default()).await?;
    let path = MemoryPath::new("knowledge/keys.md")?;
    let text = "# Keys\n\nThe spare key is under the blue pot.\n\n## 裏口\n\n裏口の鍵は管理人室にある。\n".to_owned();
    memory.write(MemoryWrite { path, text, mode: WriteMode::Overwrite, expect: None, origin: Origin::human() }).await?;
    for question in ["where is the spare key?", "裏口の鍵"] {
        for hit in memory.search(&Query::new(question).top(1)).await?.hits {
            println!("{question} → {}:{}: {}", hit.path, hit.line, hit.text.replace('\n', " "));
        }
    }
    memory.close().await;
    Ok(())
}

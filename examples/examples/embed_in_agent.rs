//! Puts the memory under an agent loop that is not ours: what comes to mind goes before the question, what was said is
//! kept afterwards. The loop here answers without a model, so that nothing but the memory is shown.
//!
//! `cargo run --example embed_in_agent`

use std::{sync::Arc, time::Duration};

use animaworks_core::{
    AnimaName, Clock, Cue, DataDir, Locale, MemoryStore, MemoryWrite, Origin, SystemClock, Tokens, TriggerKind,
    ids::MemoryPath, memory::WriteMode,
};
use animaworks_memory::{FileMemory, MemoryOptions};

/// Somebody else's agent: all it asks of a memory is the trait.
struct Agent {
    memory: Arc<dyn MemoryStore>,
    clock: SystemClock,
}

impl Agent {
    async fn turn(&self, words: &str) -> anyhow::Result<String> {
        let clock: &dyn Clock = &self.clock;
        let cue = Cue {
            trigger: TriggerKind::Chat,
            message: words.to_owned(),
            sender: "juno".to_owned(),
            intent: None,
            recent: Vec::new(),
            window: Tokens(32_000),
            within: Duration::from_secs(2),
            now: clock.now_in(chrono_tz::UTC),
            locale: Locale::En,
        };
        let priming = self.memory.prime(&cue).await?;
        let mut prompt = String::new();
        for section in &priming.sections {
            prompt.push_str(&format!("<{} trust=\"{}\">\n", section.channel.as_str(), section.trust.as_str()));
            prompt.push_str(&format!("{}\n", section.body.trim()));
        }
        prompt.push_str(&format!("juno: {words}"));
        self.keep(words).await?;
        // here another program would call its model with the prompt
        Ok(prompt)
    }

    async fn keep(&self, words: &str) -> anyhow::Result<()> {
        let write = MemoryWrite {
            path: MemoryPath::new("knowledge/said.md")?,
            text: format!("- {words}\n"),
            mode: WriteMode::Append,
            expect: None,
            origin: Origin::human(),
        };
        self.memory.write(write).await?;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let dir = DataDir::new(place.path()).anima(&AnimaName::new("wren")?);
    let clock = Arc::new(SystemClock::new());
    let files = Arc::new(FileMemory::open(dir, chrono_tz::UTC, clock, MemoryOptions::default()).await?);
    let agent = Agent { memory: files.clone(), clock: SystemClock::new() };
    for words in ["The staging server is called heron.", "Which server is for staging?"] {
        println!("{}\n", agent.turn(words).await?);
    }
    files.close().await;
    Ok(())
}

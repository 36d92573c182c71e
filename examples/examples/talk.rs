//! Embeds one Anima: makes a home in a temporary directory, tells it something, asks for it.
//!
//! `cargo run --example talk`

use animaworks_core::{
    AnimaName, DataDir, LifeEvent, Locale, Message, ModelId,
    config::Env,
    creation::{self, NewAnima, Origin, Shipped},
};
use animaworks_server::InProcess;
use futures_util::StreamExt;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // a home: any directory will do, and it can be kept
    let place = tempfile::tempdir()?;
    let data = DataDir::new(place.path().join("organisation"));
    let shipped = Shipped::new(Locale::En);
    creation::init(&data, &shipped, false)?;
    let new = NewAnima {
        name: Some("wren".to_owned()),
        model: Some(ModelId::new("local/recall")?), // no key, no network
        ..NewAnima::new(Origin::Blank)
    };
    creation::create(&data, &shipped, &new)?;

    // the Anima, from nothing but its files
    let host = InProcess::open(Env::default(), data, Locale::En)?;
    let wren = host.resident(&AnimaName::new("wren")?).await?;
    for words in ["remember that the spare key is under the blue pot", "where is the spare key?"] {
        println!("> {words}");
        let mut events = wren.anima.converse(Message::human("juno", words)).await?;
        while let Some(event) = events.next().await {
            match event?.event {
                LifeEvent::Text(piece) => print!("{piece}"),
                LifeEvent::Done(_) => println!("\n"),
                _ => {}
            }
        }
    }
    wren.close().await?;
    Ok(())
}

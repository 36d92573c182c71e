//! What the Animas of an organisation share: the post office, the task book, and the line to people.

use std::sync::Arc;

use animaworks_core::{
    AnimaName, Clock, DataDir, Locale, MemoryStore, Tool,
    config::{AnimaSettings, Models, Settings},
    error::ResultExt,
    fs,
    home::{AnimaHome, post_office::FilePostOffice, task_book::FileTaskBook},
    ids::IdSource,
    organisation::Organisation,
    prompt::Texts,
    seams::{HumanLine, PostOffice, TaskBook},
};
use animaworks_tools::{MessageServices, SendingLimits, TaskServices, human};
use chrono_tz::Tz;

/// The places where Animas meet, one set for each organisation.
#[derive(Debug, Clone)]
pub(super) struct Company {
    post: Arc<FilePostOffice>,
    book: Arc<FileTaskBook>,
    line: Arc<dyn HumanLine>,
    ids: Arc<dyn IdSource>,
}

impl Company {
    pub(super) fn new(data: &DataDir, zone: Tz, clock: &Arc<dyn Clock>, ids: &Arc<dyn IdSource>) -> Self {
        Self {
            post: Arc::new(FilePostOffice::new(data.clone(), zone, clock.clone(), ids.clone())),
            book: Arc::new(FileTaskBook::new(data.clone(), zone, clock.clone(), ids.clone())),
            line: Arc::new(human::Outbox::new(data.clone(), zone, clock.clone())),
            ids: ids.clone(),
        }
    }

    pub(super) fn post(&self) -> Arc<dyn PostOffice> {
        self.post.clone()
    }

    pub(super) fn book(&self) -> Arc<dyn TaskBook> {
        self.book.clone()
    }

    /// Ends the claims an earlier process had on the work of an Anima that lives here now.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(super) async fn take_over(&self, name: &AnimaName) {
        let (company, name) = (self.clone(), name.clone());
        let released = fs::blocking(move || {
            company.post.release_all(&name)?;
            company.book.release_all(&name)
        });
        released.await.log_err("end the claims of an earlier process");
    }

    /// The tools by which an Anima works with others and keeps what it promised.
    pub(super) fn tools(
        &self,
        home: &AnimaHome,
        memory: &Arc<dyn MemoryStore>,
        settings: &Settings,
        locale: Locale,
    ) -> Vec<Arc<dyn Tool>> {
        let messages = MessageServices {
            home: home.clone(),
            post: self.post(),
            ids: self.ids.clone(),
            limits: limits(home, settings),
            people: settings.external_messaging.clone(),
        };
        let tasks = TaskServices { home: home.clone(), book: self.book(), ids: self.ids.clone() };
        let mut tools = animaworks_tools::message_tools(&messages, locale);
        tools.extend(animaworks_tools::task_tools(&tasks, locale));
        if leads(home) {
            tools.extend(animaworks_tools::delegation_tools(&tasks, &messages, locale));
        }
        tools.extend(animaworks_tools::skill_tools(home, memory, locale));
        tools.extend(animaworks_tools::outcome_tools(home, memory, locale));
        tools.extend(animaworks_tools::human_tools(home, &self.line, locale));
        tools.extend(animaworks_tools::session_tools(&texts(home, locale), locale));
        tools
    }
}

/// How much may be sent; what cannot be read is said at the next turn, until then the defaults hold.
fn limits(home: &AnimaHome, settings: &Settings) -> SendingLimits {
    let data = home.dir().data();
    let models = Models::load(data, settings);
    match AnimaSettings::load(data, home.name(), settings, &models) {
        Ok(anima) => SendingLimits::of(&anima, &settings.heartbeat),
        Err(error) => {
            tracing::debug!(%error, "the usual sending limits hold");
            SendingLimits::default()
        }
    }
}

/// Whether anybody reports to it.
fn leads(home: &AnimaHome) -> bool {
    Organisation::load(home.dir().data())
        .log_err("read the organisation")
        .is_some_and(|all| !all.subordinates(home.name()).is_empty())
}

/// The texts of the organisation, with the shipped ones where they cannot be read.
fn texts(home: &AnimaHome, locale: Locale) -> Texts {
    Texts::read(locale, &home.dir().data().prompts())
        .log_err("read the prompts")
        .unwrap_or_else(|| Texts::shipped(locale))
}

//! From a question to places: posting rows, fusion, the files, versions, links.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    os::unix::fs::FileExt,
    sync::{Arc, LazyLock},
};

use animaworks_core::{Hit, MemoryPath, Origin, Query, ResultExt, Score, Trust, fs::FileError};
use chrono::{DateTime, NaiveDate, NaiveTime, TimeZone};
use chrono_tz::Tz;
use regex::Regex;

use crate::{
    chunk::{self, Kind, Setting, has_extension, markdown, turn},
    fuse::{
        Dense, Fusion, Named, POOL, Question, Ranked, features,
        fresh::{self, Statement},
        learned::Weights,
    },
    graph::build::PageGraph,
    index::{
        directory::{ChunkId, Directory, Doc, Source, Traits},
        plan::{self, Reading},
        reader::PostingRows,
        sources,
    },
    lexical::bm25::{Lexical, bit},
    text::{
        dates::{Mention, mentions, month_term},
        normalize::{Script, fold},
        subject,
        terms::{QueryTerm, TermKind, query_terms},
    },
};

/// How many places are read to put versions in order.
const READ_AHEAD: usize = 20;
/// Without vectors, answers to one question about one entity are versions of one fact when their scores lie no
/// further apart.
const BAND: f32 = 1.5;
/// Pages that are added because they are linked.
const LINKED: usize = 5;

/// A question, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// What to look for.
    pub(crate) terms: Vec<QueryTerm>,
    /// Where.
    pub(crate) kinds: &'static [Kind],
    /// Seconds since 1970: from, up to (exclusive).
    pub(crate) period: (i64, i64),
    /// The moment the question asks about, when it names one.
    pub(crate) as_of: Option<i64>,
    /// Its words.
    pub(crate) text: String,
    /// When it is asked, in seconds since 1970; `None` where nothing is being said meanwhile.
    pub(crate) now: Option<i64>,
}

/// Words that make a day in a question the moment it asks about, rather than what it asks for.
const AS_OF: &[&str] = &["as of", "as at", "back on", "back in", "at the time", "時点", "当時", "現在", "段階"];

impl Asked {
    /// Takes a question apart.
    pub(crate) fn of(query: &Query, zone: Tz) -> Self {
        let days = mentions(&query.text, query.today);
        let folded = fold(&query.text);
        let is_as_of = !days.is_empty() && AS_OF.iter().any(|word| folded.contains(word));
        // a moment that only says as of when is nothing to look for
        let text = if is_as_of { without_moment(&query.text) } else { query.text.clone() };
        let mut terms = query_terms(&text);
        // one day that is named says as of when, whatever else it says
        let as_of = match days.as_slice() {
            [one @ Mention::Day(_)] => Some(end_of(one.end(), zone)),
            [first, ..] if is_as_of => Some(end_of(first.end(), zone)),
            _ => None,
        };
        for mention in days {
            let mut add = |key: String, weight: f32| {
                if !terms.iter().any(|term| term.key == key) && terms.len() < crate::text::terms::MAX_QUERY_TERMS {
                    terms.push(QueryTerm { key, weight, kind: TermKind::Date });
                }
            };
            if !is_as_of {
                add(mention.term(), TermKind::Date.weight());
                if let Mention::Day(day) = mention {
                    add(month_term(day), 0.2);
                }
            }
        }
        let from = query.from.map_or(i64::MIN, |day| start_of(day, zone));
        let to = query.to.map_or(i64::MAX, |day| end_of(day, zone) + 1);
        Self { terms, kinds: Kind::of_scope(query.scope), period: (from, to), as_of, text, now: None }
    }
}

/// A question without the words that say as of when it is asked.
fn without_moment(text: &str) -> String {
    static MOMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let months = "january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec";
        let day = format!(
            r"(?:\d{{4}}[-/]\d{{1,2}}(?:[-/]\d{{1,2}})?|(?:\d{{4}}年)?\d{{1,2}}月(?:\d{{1,2}}日)?|\d{{1,2}}(?:st|nd|rd|th)? (?:{months})(?:,? \d{{4}})?|(?:{months}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|(?:{months}) \d{{4}})"
        );
        let before = r"(?:(?:as of|as at|back on|back in|at the time of|on|in) )?";
        let after = r"(?:\s*(?:の)?(?:時点|当時|現在|段階)(?:の)?(?:で)?(?:は)?)?[、,:：]?\s*";
        Regex::new(&format!("(?i){before}{day}{after}")).log_err("the pattern of moments")
    });
    let Some(moment) = &*MOMENT else { return text.to_owned() };
    let rest = moment.replace(text, "").trim().to_owned();
    // a question of nothing but a moment is about the moment
    if rest.chars().count() < 4 { text.to_owned() } else { rest }
}

impl Asked {
    /// The terms of a name, a bit each; 0 when one of them was not asked for.
    fn terms_of(&self, name: &str) -> u128 {
        let mut mask = 0;
        for wanted in query_terms(name).iter().filter(|term| term.kind != TermKind::Surface) {
            let at = (0_u32..).zip(&self.terms).find(|(_, term)| term.key == wanted.key);
            // a single kanji of a longer name adds nothing to its pairs
            match at {
                Some((number, _)) => mask |= bit(number),
                None if wanted.kind == TermKind::Kanji => {}
                None => return 0,
            }
        }
        mask
    }
}

fn start_of(day: NaiveDate, zone: Tz) -> i64 {
    zone.from_local_datetime(&day.and_time(NaiveTime::MIN)).earliest().map_or(i64::MIN, |at| at.timestamp())
}

fn end_of(day: NaiveDate, zone: Tz) -> i64 {
    day.succ_opt().map_or(i64::MAX, |next| start_of(next, zone).saturating_sub(1))
}

/// A place with its text, and why it is there.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// What is shown.
    pub(crate) hit: Hit,
    /// How much of the question it speaks of, 0 to 1.
    pub(crate) coverage: f32,
    /// Whether it has nothing of the question itself and only stands beside or behind an answer.
    pub(crate) indirect: bool,
    /// How much nearer in meaning it is than is usual, in standard deviations; 0 without a model.
    pub(crate) meant: f32,
    /// Whether it names everything the question names.
    pub(crate) names_it: bool,
    /// Whether the question is about somebody or something that is nowhere in this memory.
    pub(crate) of_stranger: bool,
}

/// Everything a search needs that does not wait.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    /// The facts about chunks.
    pub(crate) directory: &'a Directory,
    /// The links between pages.
    pub(crate) graph: &'a PageGraph,
    /// How files are read.
    pub(crate) reading: &'a Reading,
    /// Which way to put lists together.
    pub(crate) fusion: Fusion,
    /// What each sign says.
    pub(crate) weights: &'a Weights,
}

impl Search<'_> {
    /// The places that answer, best first, and files that are not as the index has them.
    pub(crate) fn run(
        &self,
        asked: &Asked,
        rows: &PostingRows,
        dense: Option<&Dense>,
        wanted: usize,
    ) -> (Vec<Answer>, Vec<String>) {
        let lexical = self.lexical(asked, rows);
        let question = self.question(asked, &lexical, dense);
        let of_stranger = Self::is_of_stranger(asked, &question);
        let ranked = self.distinct(asked, question.rank());
        let mut files = Files::new(self.reading);
        let mut answers: Vec<Answer> = Vec::new();
        let mut statements: Vec<Statement> = Vec::new();
        let mut stale = BTreeSet::new();
        for one in ranked {
            if answers.len() >= wanted.max(READ_AHEAD) {
                break;
            }
            let Some((doc, source)) = self.place(one.id) else { continue };
            match files.hit(self.directory, source, doc, &one) {
                Some(hit) => {
                    let coverage = lexical.coverage(one.id);
                    let indirect =
                        lexical.of(one.id) <= 0.0 && dense.is_none_or(|dense| !dense.cosine.contains_key(&one.id));
                    let meant = dense.map_or(0.0, |dense| dense.z(one.id));
                    let mut answer = Answer { hit, coverage, indirect, meant, names_it: false, of_stranger };
                    answer.hit.parts.insert("coverage", coverage);
                    let mask = lexical.mask(one.id);
                    let all = || question.names.iter().all(|name| mask & name.terms == name.terms);
                    answer.names_it = !question.names.is_empty() && all();
                    if statements.len() < READ_AHEAD {
                        let lived = doc.speaker > 0 || source.kind == Kind::Episodes;
                        let mut said = Statement::of(chunk::said(&answer.hit.text, doc.speaker > 0), doc.at);
                        said.score = one.score;
                        let describes = lived && !doc.traits.has(Traits::ASKS) && !self.is_addressed(&question, one.id);
                        said.names_it = answer.names_it && describes;
                        said.vector = dense.and_then(|dense| dense.vectors.get(&one.id)).cloned();
                        statements.push(said);
                    }
                    answers.push(answer);
                }
                None => {
                    stale.insert(source.path.clone());
                }
            }
        }
        let band = if self.fusion == Fusion::Learned { BAND } else { 0.0 };
        let answers = Self::in_versions(answers, &statements, asked, band);
        let answers = self.with_linked(answers, asked, wanted, &mut files);
        (answers, stale.into_iter().collect())
    }

    /// What speaks for each candidate, with where it stands.
    pub(crate) fn table(
        &self,
        asked: &Asked,
        rows: &PostingRows,
        dense: Option<&Dense>,
    ) -> Vec<(String, u32, u32, Vec<f32>)> {
        let lexical = self.lexical(asked, rows);
        let question = self.question(asked, &lexical, dense);
        let table = features::table(&question, &lexical.best(self.directory, POOL));
        let places = table.ids.iter().enumerate().filter_map(|(at, id)| {
            let (doc, source) = self.place(*id)?;
            Some((source.path.clone(), doc.line, doc.end_line, table.row(at).to_vec()))
        });
        places.collect()
    }

    fn lexical(&self, asked: &Asked, rows: &PostingRows) -> Lexical {
        let folded = fold(&asked.text);
        let named = self.directory.speakers.iter().map(|(_, name)| fold(name)).filter(|name| names(&folded, name));
        let by_speaker = named
            .filter(|name| !name.contains(|c| Script::of(c).is_run_on()))
            .fold(0, |mask, name| mask | asked.terms_of(&name));
        Lexical::score(self.directory, &asked.terms, by_speaker, rows, asked.kinds)
    }

    fn question<'q>(&'q self, asked: &Asked, lexical: &'q Lexical, dense: Option<&'q Dense>) -> Question<'q> {
        let named = subject::names(&asked.text);
        let days = (0_u32..).zip(&asked.terms).filter(|(_, term)| term.kind == TermKind::Date);
        Question {
            directory: self.directory,
            lexical,
            dense,
            kinds: asked.kinds,
            speaker: self.speaker_in(&asked.text),
            names: named
                .iter()
                .map(|name| Named { terms: asked.terms_of(name) })
                .filter(|one| one.terms != 0)
                .collect(),
            days: days.fold(0, |mask, (number, _)| mask | bit(number)),
            asks_when: subject::asks_when(&asked.text),
            asks_how_many: subject::asks_how_many(&asked.text),
            weights: self.weights,
            terms: Lexical::telling(&asked.terms),
            period: asked.period,
            fusion: self.fusion,
        }
    }

    /// Whether a question names somebody or something, and none of it is known here.
    fn is_of_stranger(asked: &Asked, question: &Question<'_>) -> bool {
        let occurs = |one: &Named| {
            (0_u32..)
                .zip(&asked.terms)
                .all(|(number, _)| one.terms & bit(number) == 0 || question.lexical.occurs(number))
        };
        !question.names.is_empty() && question.speaker.is_none() && !question.names.iter().any(occurs)
    }

    fn place(&self, id: ChunkId) -> Option<(&Doc, &Source)> {
        let doc = self.directory.doc(id)?;
        Some((doc, self.directory.source(doc.source)?))
    }

    /// The one speaker a question names; two of them say nothing about who speaks.
    fn speaker_in(&self, question: &str) -> Option<u32> {
        let folded = fold(question);
        let mut named = self.directory.speakers.iter().filter(|(_, name)| names(&folded, &fold(name)));
        let first = named.next()?;
        named.next().is_none().then_some(first.0)
    }

    /// Whether the one a question names takes part in the conversation around a place: who is spoken to is named there
    /// without being described.
    fn is_addressed(&self, question: &Question<'_>, id: ChunkId) -> bool {
        let around = [-2, -1, 1, 2].into_iter().filter_map(|by| self.directory.neighbour(id, by));
        question
            .speaker
            .is_some_and(|speaker| around.filter_map(|id| self.directory.doc(id)).any(|doc| doc.speaker == speaker))
    }

    /// What was said is in the conversation and in the log of what happened; it is shown once.
    /// What somebody has just said and waits to have answered is the question, and no memory of anything.
    fn distinct(&self, asked: &Asked, mut ranked: Vec<Ranked>) -> Vec<Ranked> {
        const SAME_MOMENT: i64 = 120;
        let waiting = self.waiting(asked);
        let mut seen: HashMap<u32, Vec<(u32, i64)>> = HashMap::new();
        ranked.retain(|one| {
            let Some(doc) = self.directory.doc(one.id) else { return false };
            if !matches!(one.id.kind(), Some(Kind::Conversation | Kind::ActivityLog)) {
                return true;
            }
            if waiting.iter().any(|(words, at)| *words == doc.words && (at - doc.at).abs() <= SAME_MOMENT) {
                return false;
            }
            let before = seen.entry(doc.words).or_default();
            let again = before.iter().any(|(source, at)| *source != doc.source && (at - doc.at).abs() <= SAME_MOMENT);
            before.push((doc.source, doc.at));
            !again
        });
        ranked
    }

    /// What was said last in each conversation by somebody else within the last minutes: its words and when.
    fn waiting(&self, asked: &Asked) -> Vec<(u32, i64)> {
        const PATIENCE: i64 = 900;
        let Some(now) = asked.now else { return Vec::new() };
        let own = self.directory.speakers.number(self.reading.dir.name().as_str());
        let last =
            self.directory.files().filter(|(_, source)| source.kind == Kind::Conversation).filter_map(|(_, source)| {
                let doc = self.directory.doc(ChunkId::new(source.kind, *source.docs.last()?))?;
                (own != Some(doc.speaker) && now.saturating_sub(doc.at) <= PATIENCE).then_some((doc.words, doc.at))
            });
        last.collect()
    }

    /// Versions of one fact in the order of their times.
    fn in_versions(answers: Vec<Answer>, statements: &[Statement], asked: &Asked, band: f32) -> Vec<Answer> {
        let order = fresh::order(statements, &asked.text, asked.as_of, band);
        let scores: Vec<Score> = answers.iter().map(|answer| answer.hit.score).collect();
        let mut slots: Vec<Option<Answer>> = answers.into_iter().map(Some).collect();
        let rest = order.len()..slots.len();
        let mut sorted = Vec::with_capacity(slots.len());
        for (place, from) in order.into_iter().chain(rest).enumerate() {
            let Some(mut answer) = slots.get_mut(from).and_then(Option::take) else { continue };
            if place != from
                && let Some(score) = scores.get(place)
            {
                answer.hit.parts.insert("version", score.0 - answer.hit.score.0);
                answer.hit.score = *score;
            }
            sorted.push(answer);
        }
        sorted
    }

    /// Pages that the best ones link to, after everything that answers by itself.
    fn with_linked(
        &self,
        mut answers: Vec<Answer>,
        asked: &Asked,
        wanted: usize,
        files: &mut Files<'_>,
    ) -> Vec<Answer> {
        answers.truncate(wanted);
        if self.graph.is_empty() || answers.len() >= wanted {
            return answers;
        }
        let seeds: Vec<u32> = answers
            .iter()
            .take(LINKED)
            .filter_map(|answer| self.directory.number_of(answer.hit.path.as_str()))
            .collect();
        let shown: BTreeSet<String> = answers.iter().map(|answer| answer.hit.path.to_string()).collect();
        let floor = answers.last().map_or(0.0, |answer| answer.hit.score.0);
        let linked = self.graph.around(&seeds, 2);
        for (number, rank) in linked.into_iter().take(LINKED) {
            let Some(source) = self.directory.source(number) else { continue };
            if answers.len() >= wanted || shown.contains(&source.path) || !asked.kinds.contains(&source.kind) {
                continue;
            }
            let Some(id) = source.docs.first().map(|seq| ChunkId::new(source.kind, *seq)) else { continue };
            let Some(doc) = self.directory.doc(id) else { continue };
            if !(asked.period.0..asked.period.1).contains(&doc.at) {
                continue;
            }
            let score = (0.5 * rank).min(floor);
            let one = Ranked { id, score, parts: BTreeMap::from([("linked", rank)]) };
            if let Some(hit) = files.hit(self.directory, source, doc, &one) {
                answers.push(Answer {
                    hit,
                    coverage: 0.0,
                    indirect: true,
                    meant: 0.0,
                    names_it: false,
                    of_stranger: false,
                });
            }
        }
        answers
    }
}

/// Whether a folded text names somebody: as a word of its own, or anywhere where there are no spaces.
pub(crate) fn names(text: &str, name: &str) -> bool {
    if name.chars().count() < 2 {
        return false;
    }
    let run_on = name.chars().next().is_some_and(|c| Script::of(c).is_run_on());
    let is_word = |c: Option<char>| c.is_some_and(|c| Script::of(c) == Script::Word);
    text.match_indices(name).any(|(at, _)| {
        run_on
            || (!is_word(text.get(..at).and_then(|before| before.chars().next_back()))
                && !is_word(text.get(at + name.len()..).and_then(|after| after.chars().next())))
    })
}

/// Files that were read for one search, each once.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    reading: &'a Reading,
    texts: HashMap<u32, Option<Arc<Opened>>>,
}

/// A page that was read, with what is asked of it again and again.
#[derive(Debug)]
pub(crate) struct Opened {
    bytes: Vec<u8>,
    /// Where its lines begin.
    lines: Vec<usize>,
    headings: markdown::Headings,
}

impl Opened {
    fn new(bytes: Vec<u8>, is_page: bool) -> Self {
        let lines = std::iter::once(0)
            .chain(bytes.iter().enumerate().filter(|(_, byte)| is_page && **byte == b'\n').map(|(at, _)| at + 1));
        let headings = std::str::from_utf8(&bytes).ok().filter(|_| is_page);
        Self { lines: lines.collect(), headings: headings.map(markdown::Headings::of).unwrap_or_default(), bytes }
    }

    /// The number of the line a byte is in.
    fn line_at(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }
}

impl<'a> Files<'a> {
    pub(crate) fn new(reading: &'a Reading) -> Self {
        Self { reading, texts: HashMap::new() }
    }

    /// The bytes of a place: Markdown is read whole and once, of a long log only the place itself.
    fn bytes(&mut self, file: &std::path::Path, doc: &Doc, markdown: bool, is_page: bool) -> Option<Arc<Opened>> {
        let read = |file: &std::path::Path| -> Result<Vec<u8>, FileError> {
            if markdown {
                return plan::page_bytes(file).map(|bytes| plan::text_of(&bytes).into_bytes());
            }
            let opened = fs_err::File::open(file).map_err(|error| FileError::io("read", file, error))?;
            let mut bytes = vec![0; doc.bytes as usize];
            let read = opened
                .file()
                .read_at(&mut bytes, u64::from(doc.start))
                .map_err(|error| FileError::io("read", file, error))?;
            bytes.truncate(read);
            Ok(bytes)
        };
        if !markdown {
            return read(file).log_err("read a place of memory").map(|bytes| Arc::new(Opened::new(bytes, false)));
        }
        self.texts
            .entry(doc.source)
            .or_insert_with(|| {
                let bytes = read(file).log_err("read a page of memory");
                bytes.map(|bytes| Arc::new(Opened::new(bytes, is_page)))
            })
            .clone()
    }

    /// A place as it is embedded: what it is about, and what it says.
    pub(crate) fn passage(&mut self, directory: &Directory, id: ChunkId) -> Option<String> {
        let doc = directory.doc(id)?;
        let source = directory.source(doc.source)?;
        let hit = self.hit(directory, source, doc, &Ranked { id, score: 0.0, parts: BTreeMap::new() })?;
        let speaker = directory.speakers.value(doc.speaker).map(String::as_str);
        let said = chunk::said(&hit.text, speaker.is_some());
        // a heading that is only a number says nothing
        let own = hit.text.lines().map_while(|line| markdown::heading(line).map(|(_, title)| title));
        let above = hit.headings.iter().map(String::as_str);
        let headings = above.chain(own).filter(|heading| heading.contains(char::is_alphabetic));
        let about = match speaker {
            Some(speaker) => speaker.to_owned(),
            None if hit.headings.contains(&source.title) => headings.collect::<Vec<_>>().join(" > "),
            None => std::iter::once(source.title.as_str()).chain(headings).collect::<Vec<_>>().join(" > "),
        };
        Some(if about.is_empty() { said.to_owned() } else { format!("{about}: {said}") })
    }

    /// A place as it stands in its file now; `None` when the file is not as the index has it.
    pub(crate) fn hit(&mut self, directory: &Directory, source: &Source, doc: &Doc, one: &Ranked) -> Option<Hit> {
        let (root, rest) = sources::locate(&self.reading.dir, &source.path);
        let file = root.join(rest);
        let record = source.kind.is_record(&source.path);
        let whole = !record || has_extension(&source.path, "json");
        let opened = self.bytes(&file, doc, whole, !record)?;
        let bytes = &opened.bytes;
        let (start, end) = (doc.start as usize, doc.start as usize + doc.bytes as usize);
        let slice = if whole { bytes.get(start..end)? } else { bytes.as_slice() };
        let setting = Setting {
            kind: source.kind,
            path: &source.path,
            modified: DateTime::from_timestamp_nanos(source.mtime_ns),
            zone: self.reading.zone,
            anima: self.reading.dir.name().as_str(),
        };
        let (text, headings) = if record {
            (turn::text_of(setting, slice)?, Vec::new())
        } else {
            let text = std::str::from_utf8(slice).ok()?;
            // the same words on another line are not the place the index means
            if opened.line_at(start) != doc.line as usize {
                return None;
            }
            // line breaks of other systems are no part of what was written
            (text.lines().collect::<Vec<_>>().join("\n"), opened.headings.above(start))
        };
        if !plan::is_same_words(&text, doc.words) {
            return None;
        }
        // a line that says where it comes from is only doubted when its file says something else
        let origin = match directory.origins.value(doc.origin) {
            Some(own) if source.origin == Origin::default() => own.clone(),
            Some(own) => own.joined(&source.origin),
            None => or_place(&source.origin, source),
        };
        let trust = origin.trust().min(Trust::Trusted);
        Some(Hit {
            path: MemoryPath::new(&source.path).ok()?,
            line: doc.line,
            end_line: doc.end_line,
            headings,
            text,
            score: Score(one.score),
            parts: one.parts.clone(),
            kind: source.kind.as_str().to_owned(),
            at: DateTime::from_timestamp(doc.at, 0),
            origin,
            trust,
        })
    }
}

/// Where a file's words come from when it does not say: what is shipped comes from the framework, the rest was
/// written by the Anima itself or its owner. What came from outside is marked when it is written.
fn or_place(origin: &Origin, source: &Source) -> Origin {
    if *origin != Origin::default() {
        return origin.clone();
    }
    match source.kind {
        Kind::CommonKnowledge if source.path.starts_with("common_knowledge/") => Origin::system(),
        Kind::Skills if source.path.starts_with("common_skills/") => Origin::system(),
        _ => Origin::anima(),
    }
}

/// Searches the files themselves, without an index: slower, but it needs nothing.
pub(crate) fn scan(
    reading: &Reading,
    ignored: &sources::Ignored,
    asked: &Asked,
    today: NaiveDate,
    wanted: usize,
) -> Vec<Answer> {
    let mut directory = Directory::default();
    let mut rows = PostingRows::default();
    let mut data: BTreeMap<(usize, i64), Vec<u8>> = BTreeMap::new();
    let numbers: HashMap<&str, usize> =
        asked.terms.iter().enumerate().map(|(at, term)| (term.key.as_str(), at)).collect();
    for found in
        sources::walk(&reading.dir, ignored, today).into_iter().filter(|found| asked.kinds.contains(&found.kind))
    {
        let looked = plan::look(reading, None, &directory, &found, 0).log_err("scan a memory file");
        let Some(plan::Look::Changed(update)) = looked else { continue };
        let file = directory.next_source();
        let mut source = update.source;
        for planned in update.docs {
            let id = ChunkId::new(found.kind, directory.next_seq(found.kind));
            let mut doc = planned.doc;
            doc.source = file;
            doc.speaker = planned.speaker.map_or(0, |speaker| directory.speakers.intern(&speaker, &speaker));
            doc.origin = planned
                .origin
                .map_or(0, |origin| directory.origins.intern(&crate::index::writer::origin_key(&origin), &origin));
            let terms = planned.terms.unwrap_or_default();
            doc.length = u16::try_from(terms.length).unwrap_or(u16::MAX);
            for (term, count) in &terms.counts {
                if let Some(number) = numbers.get(&**term) {
                    crate::lexical::postings::push(data.entry((*number, id.block())).or_default(), id.local(), *count);
                }
            }
            source.docs.push(u32::try_from(id.seq()).unwrap_or(u32::MAX));
            directory.put(id, doc);
        }
        directory.put_source(file, source);
    }
    rows.rows = data.into_iter().map(|((number, block), data)| (number, block, data)).collect();
    let graph = PageGraph::build(&directory);
    let search = Search {
        directory: &directory,
        graph: &graph,
        reading,
        fusion: Fusion::default(),
        weights: Weights::shipped(),
    };
    search.run(asked, &rows, None, wanted).0
}

//! From a question to places: posting rows, fusion, the files, versions, links.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    os::unix::fs::FileExt,
    sync::Arc,
};

use animaworks_core::{Hit, MemoryPath, Origin, Query, ResultExt, Score, Trust, fs::FileError};
use chrono::{DateTime, NaiveDate, NaiveTime, TimeZone};
use chrono_tz::Tz;

use crate::{
    chunk::{Kind, Setting, has_extension, markdown, turn},
    fuse::{
        Dense, Fusion, Question, Ranked,
        fresh::{self, Statement},
    },
    graph::build::PageGraph,
    index::{
        directory::{ChunkId, Directory, Doc, Source},
        plan::{self, Reading},
        reader::PostingRows,
        sources,
    },
    lexical::bm25::Lexical,
    text::{
        dates::{Mention, mentions, month_term},
        normalize::{Script, fold},
        terms::{QueryTerm, TermKind, query_terms},
    },
};

/// How many places are read to put versions in order.
const READ_AHEAD: usize = 20;
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
}

/// Words that make a day in a question the moment it asks about, rather than what it asks for.
const AS_OF: &[&str] = &["as of", "back on", "at the time", "時点", "当時"];

impl Asked {
    /// Takes a question apart.
    pub(crate) fn of(query: &Query, zone: Tz) -> Self {
        let mut terms = query_terms(&query.text);
        let days = mentions(&query.text, query.today);
        let folded = fold(&query.text);
        let is_as_of = AS_OF.iter().any(|word| folded.contains(word));
        let as_of = days.first().filter(|_| is_as_of).map(|mention| end_of(mention.end(), zone));
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
        Self { terms, kinds: Kind::of_scope(query.scope), period: (from, to), as_of, text: query.text.clone() }
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
        let lexical = Lexical::score(self.directory, &asked.terms, rows, asked.kinds);
        let question = Question {
            directory: self.directory,
            lexical: &lexical,
            dense,
            kinds: asked.kinds,
            speaker: self.speaker_in(&asked.text),
            terms: Lexical::telling(&asked.terms),
            period: asked.period,
            fusion: self.fusion,
        };
        let ranked = self.distinct(question.rank());
        let mut files = Files::new(self.reading);
        let mut answers: Vec<(Answer, i64)> = Vec::new();
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
                    let mut answer = Answer { hit, coverage, indirect };
                    answer.hit.parts.insert("coverage", coverage);
                    answers.push((answer, doc.at));
                }
                None => {
                    stale.insert(source.path.clone());
                }
            }
        }
        let answers = Self::in_versions(answers, asked);
        let answers = self.with_linked(answers, asked, wanted, &mut files);
        (answers, stale.into_iter().collect())
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

    /// What was said is in the conversation and in the log of what happened; it is shown once.
    fn distinct(&self, mut ranked: Vec<Ranked>) -> Vec<Ranked> {
        const SAME_MOMENT: i64 = 120;
        let mut seen: HashMap<u32, Vec<(u32, i64)>> = HashMap::new();
        ranked.retain(|one| {
            let Some(doc) = self.directory.doc(one.id) else { return false };
            if !matches!(one.id.kind(), Some(Kind::Conversation | Kind::ActivityLog)) {
                return true;
            }
            let before = seen.entry(doc.words).or_default();
            let again = before.iter().any(|(source, at)| *source != doc.source && (at - doc.at).abs() <= SAME_MOMENT);
            before.push((doc.source, doc.at));
            !again
        });
        ranked
    }

    /// Versions of one fact in the order of their times.
    fn in_versions(answers: Vec<(Answer, i64)>, asked: &Asked) -> Vec<Answer> {
        let statements: Vec<Statement> =
            answers.iter().take(READ_AHEAD).map(|(answer, at)| Statement::of(&answer.hit.text, *at)).collect();
        let order = fresh::order(&statements, &asked.text, asked.as_of);
        let scores: Vec<Score> = answers.iter().map(|(answer, _)| answer.hit.score).collect();
        let mut slots: Vec<Option<Answer>> = answers.into_iter().map(|(answer, _)| Some(answer)).collect();
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
                answers.push(Answer { hit, coverage: 0.0, indirect: true });
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
    texts: HashMap<u32, Option<Arc<Vec<u8>>>>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(reading: &'a Reading) -> Self {
        Self { reading, texts: HashMap::new() }
    }

    /// The bytes of a place: Markdown is read whole and once, of a long log only the place itself.
    fn bytes(&mut self, file: &std::path::Path, doc: &Doc, markdown: bool) -> Option<Arc<Vec<u8>>> {
        let read = |file: &std::path::Path| -> Result<Vec<u8>, FileError> {
            if markdown {
                return animaworks_core::fs::read_text(file).map(String::into_bytes);
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
            return read(file).log_err("read a place of memory").map(Arc::new);
        }
        self.texts
            .entry(doc.source)
            .or_insert_with(|| read(file).log_err("read a page of memory").map(Arc::new))
            .clone()
    }

    /// A place as it is embedded: what it is about, and what it says.
    pub(crate) fn passage(&mut self, directory: &Directory, id: ChunkId) -> Option<String> {
        let doc = directory.doc(id)?;
        let source = directory.source(doc.source)?;
        let hit = self.hit(directory, source, doc, &Ranked { id, score: 0.0, parts: BTreeMap::new() })?;
        let about = match directory.speakers.value(doc.speaker) {
            Some(speaker) if !hit.text.contains(speaker.as_str()) => speaker.as_str(),
            Some(_) => "",
            None => source.title.as_str(),
        };
        Some(if about.is_empty() { hit.text } else { format!("{about}: {}", hit.text) })
    }

    /// A place as it stands in its file now; `None` when the file is not as the index has it.
    pub(crate) fn hit(&mut self, directory: &Directory, source: &Source, doc: &Doc, one: &Ranked) -> Option<Hit> {
        let (root, rest) = sources::locate(&self.reading.dir, &source.path);
        let file = root.join(rest);
        let record = source.kind.is_record(&source.path);
        let whole = !record || has_extension(&source.path, "json");
        let bytes = self.bytes(&file, doc, whole)?;
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
            // line breaks of other systems are no part of what was written
            let page = std::str::from_utf8(&bytes).ok()?;
            // the same words on another line are not the place the index means
            let line = page.get(..start)?.matches('\n').count() + 1;
            if line != doc.line as usize {
                return None;
            }
            (text.lines().collect::<Vec<_>>().join("\n"), markdown::headings_above(page, start))
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
    let search = Search { directory: &directory, graph: &graph, reading, fusion: Fusion::Score };
    search.run(asked, &rows, None, wanted).0
}

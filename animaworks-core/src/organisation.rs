//! Who reports to whom, from the `supervisor` fields of the `status.json` files (exec spec §10.6).

mod sync;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use petgraph::{
    Direction,
    algo::tarjan_scc,
    graph::{DiGraph, NodeIndex},
};

pub use sync::{Synced, sync};

use crate::{
    config::Status,
    creation,
    error::chain,
    fs::{self, FileError},
    gate::near,
    i18n::Locale,
    ids::AnimaName,
    layout::DataDir,
    t,
};

/// An Anima as the organisation sees it.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name.
    pub name: AnimaName,
    /// Who it says it reports to; not necessarily somebody who exists.
    pub says: Option<String>,
    /// What it is good at.
    pub speciality: Option<String>,
    /// Its role.
    pub role: Option<String>,
    /// Whether it works: it is enabled, and its `status.json` can be read.
    pub enabled: bool,
}

/// Something wrong with the organisation. Nothing of it stops anybody.
#[derive(Debug, Clone)]
pub enum OrgProblem {
    /// A supervisor that does not exist; the Anima counts as top level.
    UnknownSupervisor {
        /// Who says so.
        anima: AnimaName,
        /// The name it gives.
        supervisor: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// Animas that supervise each other in a circle; none of these links counts.
    Cycle(Vec<AnimaName>),
    /// A `status.json` that cannot be read; the Anima is disabled.
    Broken {
        /// Whose it is.
        anima: AnimaName,
        /// Why.
        error: Arc<FileError>,
    },
}

impl OrgProblem {
    /// What is wrong, in a person's words.
    pub fn text(&self, locale: Locale) -> String {
        match self {
            Self::UnknownSupervisor { anima, supervisor, near } if near.is_empty() => {
                t!(locale, "core.organisation.unknown_supervisor", anima = anima, supervisor = supervisor)
            }
            Self::UnknownSupervisor { anima, supervisor, near } => t!(
                locale,
                "core.organisation.unknown_supervisor_near",
                anima = anima,
                supervisor = supervisor,
                near = near.join(", ")
            ),
            Self::Cycle(animas) => {
                let names: Vec<_> = animas.iter().map(AnimaName::as_str).collect();
                t!(locale, "core.organisation.cycle", animas = names.join(", "))
            }
            Self::Broken { anima, error } => {
                t!(locale, "core.organisation.broken", anima = anima, problem = chain(&**error))
            }
        }
    }
}

/// All Animas and the lines between them. Every answer is in the order of names.
#[derive(Debug, Clone, Default)]
pub struct Organisation {
    /// From supervisor to subordinate; without circles.
    graph: DiGraph<Member, ()>,
    index: BTreeMap<AnimaName, NodeIndex>,
    problems: Vec<OrgProblem>,
}

impl Organisation {
    /// Reads the organisation. A broken `status.json` disables its Anima and nobody else.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] when the Animas cannot be listed.
    pub fn load(data: &DataDir) -> Result<Self, FileError> {
        let mut members = Vec::new();
        let mut problems = Vec::new();
        for name in names(data)? {
            let anima = data.anima(&name);
            match Status::load(&anima) {
                Ok(status) => {
                    let fields = status.fields;
                    let mut says = fields.supervisor;
                    if says.is_none() && !status.says_supervisor {
                        // how it was written before status.json had it
                        let identity = fs::read_text_if_exists(&anima.file("identity.md"))?.unwrap_or_default();
                        says = creation::supervisor_in(&identity);
                    }
                    let enabled = fields.enabled.unwrap_or(true);
                    members.push(Member { name, says, speciality: fields.speciality, role: fields.role, enabled });
                }
                Err(error) => {
                    problems.push(OrgProblem::Broken { anima: name.clone(), error: Arc::new(error) });
                    members.push(Member { name, says: None, speciality: None, role: None, enabled: false });
                }
            }
        }
        Ok(Self::of(members, problems))
    }

    /// Draws the lines between members.
    fn of(members: Vec<Member>, mut problems: Vec<OrgProblem>) -> Self {
        let mut graph = DiGraph::new();
        let index: BTreeMap<AnimaName, NodeIndex> =
            members.into_iter().map(|member| (member.name.clone(), graph.add_node(member))).collect();
        let lines: Vec<(NodeIndex, String)> =
            graph.node_indices().filter_map(|node| Some((node, graph[node].says.clone()?))).collect();
        for (node, supervisor) in lines {
            match index.iter().find(|(name, _)| name.as_str() == supervisor) {
                Some((_, above)) => {
                    graph.add_edge(*above, node, ());
                }
                None => {
                    let near = near(&supervisor, index.keys().map(AnimaName::as_str), 3);
                    let anima = graph[node].name.clone();
                    problems.push(OrgProblem::UnknownSupervisor { anima, supervisor, near });
                }
            }
        }
        for circle in tarjan_scc(&graph) {
            let inside: BTreeSet<NodeIndex> = circle.iter().copied().collect();
            let within =
                |edge| graph.edge_endpoints(edge).is_some_and(|(a, b)| inside.contains(&a) && inside.contains(&b));
            let edges: Vec<_> = graph.edge_indices().filter(|edge| within(*edge)).collect();
            if edges.is_empty() {
                continue;
            }
            graph.retain_edges(|_, edge| !edges.contains(&edge));
            let mut animas: Vec<_> = inside.iter().map(|node| graph[*node].name.clone()).collect();
            animas.sort();
            problems.push(OrgProblem::Cycle(animas));
        }
        Self { graph, index, problems }
    }

    /// What is wrong with it.
    pub fn problems(&self) -> &[OrgProblem] {
        &self.problems
    }

    /// Everybody.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.index.values().map(|node| &self.graph[*node])
    }

    /// Everybody's name.
    pub fn names(&self) -> impl Iterator<Item = &AnimaName> {
        self.index.keys()
    }

    /// One of them.
    pub fn member(&self, name: &AnimaName) -> Option<&Member> {
        self.index.get(name).map(|node| &self.graph[*node])
    }

    /// Who it reports to.
    pub fn supervisor(&self, name: &AnimaName) -> Option<&AnimaName> {
        self.step(name, Direction::Incoming).into_iter().next()
    }

    /// Everybody above it, nearest first.
    pub fn superiors(&self, name: &AnimaName) -> Vec<&AnimaName> {
        std::iter::successors(self.supervisor(name), |above| self.supervisor(above)).collect()
    }

    /// Who reports to it directly.
    pub fn subordinates(&self, name: &AnimaName) -> Vec<&AnimaName> {
        self.step(name, Direction::Outgoing)
    }

    /// Everybody below it, level by level.
    pub fn descendants(&self, name: &AnimaName) -> Vec<&AnimaName> {
        let mut found = Vec::new();
        let mut next: VecDeque<&AnimaName> = self.subordinates(name).into();
        while let Some(below) = next.pop_front() {
            found.push(below);
            next.extend(self.subordinates(below));
        }
        found
    }

    /// Whether `below` reports to `above`, directly or over others.
    pub fn is_above(&self, above: &AnimaName, below: &AnimaName) -> bool {
        self.superiors(below).contains(&above)
    }

    /// The others who report to the same supervisor. Those at the top have no peers.
    pub fn peers(&self, name: &AnimaName) -> Vec<&AnimaName> {
        let Some(supervisor) = self.supervisor(name) else {
            return Vec::new();
        };
        self.subordinates(supervisor).into_iter().filter(|other| *other != name).collect()
    }

    /// Everybody who reports to nobody.
    pub fn top_level(&self) -> Vec<&AnimaName> {
        self.names().filter(|name| self.supervisor(name).is_none()).collect()
    }

    /// The names that look most like `wanted`, for "did you mean".
    pub fn near(&self, wanted: &str) -> Vec<String> {
        near(wanted, self.names().map(AnimaName::as_str), 3)
    }

    /// The circle an Anima would be in if it reported to `supervisor`.
    pub fn would_be_circle(&self, name: &AnimaName, supervisor: &AnimaName) -> bool {
        name == supervisor || self.is_above(name, supervisor)
    }

    fn step(&self, name: &AnimaName, direction: Direction) -> Vec<&AnimaName> {
        let Some(node) = self.index.get(name) else {
            return Vec::new();
        };
        let mut found: Vec<_> =
            self.graph.neighbors_directed(*node, direction).map(|node| &self.graph[node].name).collect();
        found.sort();
        found
    }
}

/// The Animas of an organisation, in the order of their names. Directories whose name is no Anima's name are passed over.
///
/// # Errors
///
/// [`FileError::Io`] when the directory cannot be listed; a missing one has nobody in it.
pub fn names(data: &DataDir) -> Result<Vec<AnimaName>, FileError> {
    let animas = data.animas();
    let list = match fs_err::read_dir(&animas) {
        Ok(list) => list,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FileError::io("list", &animas, error)),
    };
    let mut names = Vec::new();
    for entry in list {
        let entry = entry.map_err(|error| FileError::io("list", &animas, error))?;
        if let Ok(name) = AnimaName::new(entry.file_name().to_string_lossy())
            && entry.path().is_dir()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests;

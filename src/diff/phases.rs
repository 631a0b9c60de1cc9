//! How long things took. A phase is matched by the names on the way to it, and among equals by its place.
//!
//! Both trees are laid into one: a node is known by its parent's number, its name and its place, so that a path of any
//! depth costs one entry. Only the paths that are told are put together.

use super::{Change, Section, Threshold};
use crate::evidence::Bundle;
use std::collections::HashMap;

/// More changes are counted only.
const MOST: usize = 20;
/// What stands between the names of a path.
const UNDER: &str = " › ";
/// Names of a path that are told: the first ones and the last ones.
const NAMES: usize = 8;

/// Compares the durations, the largest changes first.
pub(super) fn compare(a: &Bundle, b: &Bundle, threshold: Threshold) -> Section {
    let mut tree = Tree::default();
    tree.lay(a, 0);
    tree.lay(b, 1);
    let by = |node: &Node| {
        let [first, second] = node.ms.map(Option::unwrap_or_default);
        let by = (first - second).abs();
        (by >= threshold.ms && by * 100.0 >= threshold.percent * first.max(second)).then_some(by)
    };
    let nodes = tree.nodes.iter().enumerate();
    let mut changes: Vec<(f64, usize)> = nodes.filter_map(|(place, node)| Some((by(node)?, place))).collect();
    changes.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let more = changes.len().saturating_sub(MOST) as u64;
    let changes = changes.into_iter().take(MOST).map(|(_, place)| tree.change(place)).collect();
    Section { name: "durations".to_owned(), times: true, changes, more }
}

/// The durations of both sides with their paths.
#[derive(Default)]
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    places: HashMap<(Option<usize>, Name<'a>, u64), usize>,
}

struct Node<'a> {
    parent: Option<usize>,
    name: Name<'a>,
    /// Which of its siblings of one name it is, from 1.
    number: u64,
    /// How long it took on each side; nothing where it is not there.
    ms: [Option<f64>; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Name<'a> {
    Job,
    OnlyBuild,
    Build(u32),
    Phase(&'a str),
}

impl<'a> Tree<'a> {
    /// Lays one side into the tree.
    fn lay(&mut self, bundle: &'a Bundle, side: usize) {
        self.put(None, Name::Job, 1, side, bundle.evidence.duration_ms);
        let several = bundle.evidence.builds.len() > 1;
        for build in &bundle.phases.builds {
            let name = if several { Name::Build(build.build) } else { Name::OnlyBuild };
            let root = self.put(None, name, 1, side, build.duration_ms);
            // Parents stand before their children.
            let mut places: HashMap<u64, usize> = HashMap::new();
            let mut seen: HashMap<(usize, &str), u64> = HashMap::new();
            for phase in &build.phases {
                let parent = phase.parent.and_then(|parent| places.get(&parent)).copied().unwrap_or(root);
                let number = seen.entry((parent, &phase.name)).or_default();
                *number += 1;
                let name = Name::Phase(&phase.name);
                let place = self.put(Some(parent), name, *number, side, phase.duration_ms);
                places.insert(phase.phase, place);
            }
        }
    }

    fn put(&mut self, parent: Option<usize>, name: Name<'a>, number: u64, side: usize, ms: f64) -> usize {
        let place = *self.places.entry((parent, name, number)).or_insert_with(|| {
            self.nodes.push(Node { parent, name, number, ms: [None; 2] });
            self.nodes.len() - 1
        });
        self.nodes[place].ms[side] = Some(ms);
        place
    }

    fn change(&self, place: usize) -> Change {
        let [a, b] = self.nodes[place].ms.map(|ms| ms.map(|ms| format!("{ms:.1} ms")));
        Change { what: self.path(place), a, b }
    }

    /// The names on the way to a node; of a long way the first and the last ones.
    fn path(&self, place: usize) -> String {
        let mut way: Vec<&Node> =
            std::iter::successors(Some(&self.nodes[place]), |node| Some(&self.nodes[node.parent?])).collect();
        way.reverse();
        let told = |nodes: &[&Node]| nodes.iter().map(|node| node.told()).collect::<Vec<_>>().join(UNDER);
        match way.len().checked_sub(2 * NAMES) {
            None | Some(0) => told(&way),
            Some(between) => {
                let (first, last) = (&way[..NAMES], &way[NAMES + between..]);
                format!("{}{UNDER}… {between} more …{UNDER}{}", told(first), told(last))
            }
        }
    }
}

impl Node<'_> {
    fn told(&self) -> String {
        let name = match self.name {
            Name::Job => "the job".to_owned(),
            Name::OnlyBuild => "the build".to_owned(),
            Name::Build(number) => format!("build {number}"),
            Name::Phase(name) => name.to_owned(),
        };
        if self.number == 1 { name } else { format!("{name} ({})", self.number) }
    }
}

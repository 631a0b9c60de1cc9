//! The phase tree that a log tells, rebuilt here from its lines, with everything that must hold for it asserted.

use super::bundle::Bundle;
use super::witness::Call;
use serde_json::Value;
use std::collections::BTreeMap;

/// One phase instance.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its parent's instance.
    pub parent: Option<u64>,
    /// The announced steps.
    pub steps: i64,
    /// The reported steps.
    pub reported: u64,
    /// Steps that were reported while a child was open.
    pub under_child: u64,
    /// `phaseFinished` or `phaseAborted`; none while it is open.
    pub end: Option<String>,
}

/// The tree of one build.
#[derive(Debug, Default)]
pub struct Tree {
    /// The instances by their number.
    pub instances: BTreeMap<u64, Instance>,
    /// The callbacks in order, as the builder made them.
    pub calls: Vec<Call>,
}

impl Tree {
    /// Rebuilds the tree of a build. Panics where it is not balanced, or a parent is not right.
    pub fn of(bundle: &Bundle, build: u64) -> Self {
        let mut tree = Self::default();
        for event in bundle.events.iter().filter(|e| e["build"] == build) {
            match event["event"].as_str().expect("an event has a kind") {
                "phaseStarted" => tree.start(event),
                "stepCompleted" => tree.step(event),
                kind @ ("phaseFinished" | "phaseAborted") => tree.end(kind, event),
                _ => {}
            }
        }
        for (phase, instance) in &tree.instances {
            assert!(instance.end.is_some(), "phase {phase} ({}) is never closed", instance.name);
        }
        tree
    }

    /// The instances of a name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Instance> {
        self.instances.values().filter(move |i| i.name == name)
    }

    /// The name of an instance's parent.
    pub fn parent_name(&self, instance: &Instance) -> Option<&str> {
        instance.parent.map(|phase| self.instances[&phase].name.as_str())
    }

    /// The roots.
    pub fn roots(&self) -> Vec<&str> {
        self.instances.values().filter(|i| i.parent.is_none()).map(|i| i.name.as_str()).collect()
    }

    /// What holds for every whole RTX build: one root, a parent's steps under its open child, repeats as instances.
    pub fn assert_whole(&self) {
        assert_eq!(self.roots(), ["Building engine"]);
        for instance in self.instances.values() {
            assert_eq!(instance.end.as_deref(), Some("phaseFinished"), "{} has its own end", instance.name);
        }
        let costs: Vec<_> = self.named("Computing profile costs").collect();
        assert!(
            costs.iter().any(|i| i.under_child > 0),
            "steps of a parent were reported under its open child"
        );
        assert!(
            self.named("Computing reformatting costs").count() >= 2,
            "repeats are instances of their own"
        );
        for repeat in self.named("Computing reformatting costs") {
            assert_eq!(self.parent_name(repeat), Some("Timing tensor reformats"));
        }
    }

    fn start(&mut self, event: &Value) {
        let phase = number(event, "phase");
        let parent = event["parent"].as_u64();
        assert!(event.get("unknownParent").is_none(), "the parent is known: {event}");
        if let Some(parent) = parent {
            assert!(self.instances[&parent].end.is_none(), "the parent is open: {event}");
        }
        let instance = Instance {
            name: string(event, "name"),
            parent,
            steps: event["steps"].as_i64().expect("steps"),
            reported: 0,
            under_child: 0,
            end: None,
        };
        let parent_name = self.parent_name(&instance).map(str::to_owned);
        self.calls.push(Call::Start(instance.name.clone(), parent_name, instance.steps));
        assert!(self.instances.insert(phase, instance).is_none(), "phase {phase} is started once");
    }

    fn step(&mut self, event: &Value) {
        let phase = number(event, "phase");
        let has_open_child = self.has_open_child(phase);
        let instance = self.instances.get_mut(&phase).expect("the step's phase is known");
        assert!(instance.end.is_none(), "the step's phase is open: {event}");
        assert_eq!(
            (instance.name.as_str(), instance.parent),
            (event["name"].as_str().unwrap_or("?"), event["parent"].as_u64())
        );
        instance.reported += 1;
        instance.under_child += u64::from(has_open_child);
        self.calls.push(Call::Step(string(event, "name"), event["step"].as_i64().expect("a step")));
    }

    fn end(&mut self, kind: &str, event: &Value) {
        let phase = number(event, "phase");
        assert!(!self.has_open_child(phase), "children are closed before their parent: {event}");
        let instance = self.instances.get_mut(&phase).expect("the ended phase is known");
        assert!(instance.end.is_none(), "a phase ends once: {event}");
        assert_eq!(event["reported"], instance.reported, "the reported steps were counted");
        instance.end = Some(kind.to_owned());
        if kind == "phaseFinished" {
            self.calls.push(Call::Finish(string(event, "name")));
        }
    }

    fn has_open_child(&self, phase: u64) -> bool {
        self.instances.values().any(|i| i.parent == Some(phase) && i.end.is_none())
    }
}

fn number(event: &Value, field: &str) -> u64 {
    event[field].as_u64().unwrap_or_else(|| panic!("no {field} in {event}"))
}

fn string(event: &Value, field: &str) -> String {
    event[field].as_str().unwrap_or_else(|| panic!("no {field} in {event}")).to_owned()
}

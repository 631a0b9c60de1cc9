//! What the builders were given, and what they returned.

use super::{Section, Sheet, names};
use crate::event::{BuildFacts, Tensor};
use crate::evidence::{Artifact, Build, Bundle, Evidence, Inventory};
use std::collections::{BTreeMap, BTreeSet};

/// Compares the builds by their numbers: their configuration and their network.
pub(super) fn compare(a: &Evidence, b: &Evidence, sections: &mut Vec<Section>) {
    let several = a.builds.len().max(b.builds.len()) > 1;
    for (first, second) in a.builds.iter().zip(&b.builds) {
        let name =
            |what: &str| if several { format!("{what} of build {}", first.build) } else { what.to_owned() };
        let mut configuration = Sheet::new(name("configuration"));
        let mut network = Sheet::new(name("network"));
        let told = [first, second].map(|build| if build.facts.is_some() { "known" } else { "not known" });
        configuration.put("what the builder told", told.map(Some));
        if let (Some(one), Some(other)) = (&first.facts, &second.facts) {
            let known = names::hold(first.library.as_deref()) && names::hold(second.library.as_deref());
            configure(&mut configuration, one, other, known);
            connect(&mut network, one, other, known);
        }
        sections.extend([configuration.section(), network.section()]);
    }
}

fn configure(sheet: &mut Sheet, a: &BuildFacts, b: &BuildFacts, known: bool) {
    let flags = [a, b].map(|facts| {
        let set = facts.config.get("flags").map_or_else(Vec::new, |bits| names::flags(*bits, known));
        set.into_iter().map(|flag| (flag, "set")).collect::<BTreeMap<_, _>>()
    });
    sheet.put_all("flag ", &flags[0], &flags[1]);
    let rest = [a, b].map(|facts| {
        let mut config = facts.config.clone();
        config.remove("flags");
        config
    });
    sheet.put_all("", &rest[0], &rest[1]);
    sheet.put("targets", [a, b].map(|facts| Some(joined(&facts.compute_capabilities))));
    sheet.put("timing cache attached", [a, b].map(|facts| facts.timing_cache_attached));
    let shapes = [a, b].map(|facts| {
        let of = |at: usize| {
            let profile = &facts.profiles[at];
            let shapes = format!("{} / {} / {}", profile.min, profile.opt, profile.max);
            (format!("{} of {}", profile.profile, profile.input), shapes)
        };
        (0..facts.profiles.len()).map(of).collect::<BTreeMap<_, _>>()
    });
    sheet.put_all("profile ", &shapes[0], &shapes[1]);
}

fn connect(sheet: &mut Sheet, a: &BuildFacts, b: &BuildFacts, known: bool) {
    sheet.put("flags", [a, b].map(|facts| Some(facts.network_flags)));
    sheet.put("layers", [a, b].map(|facts| Some(facts.layers)));
    let kinds = [a, b].map(|facts| {
        let named = |(kind, count): (&String, &u32)| (names::layer(kind, known), *count);
        facts.layer_kinds.iter().map(named).collect::<BTreeMap<_, _>>()
    });
    sheet.put_all("", &kinds[0], &kinds[1]);
    for (what, [one, other]) in [("input ", [&a.inputs, &b.inputs]), ("output ", [&a.outputs, &b.outputs])] {
        sheet.put_all(what, &tensors(one), &tensors(other));
    }
}

fn tensors(list: &[Tensor]) -> BTreeMap<String, String> {
    let told = |tensor: &Tensor| {
        let kind = names::data_type(tensor.data_type);
        (
            tensor.name.clone(),
            format!("{kind} {}", if tensor.shape.is_empty() { "scalar" } else { &tensor.shape }),
        )
    };
    list.iter().map(told).collect()
}

fn joined(numbers: &[i64]) -> String {
    if numbers.is_empty() {
        return "none named".to_owned();
    }
    let words: BTreeSet<String> = numbers.iter().map(ToString::to_string).collect();
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// What came of the builds, and what stands at the declared places.
pub(super) fn engines(one: &Bundle, other: &Bundle) -> Section {
    let (a, b) = (&one.evidence, &other.evidence);
    let mut sheet = Sheet::new("engine");
    let several = a.builds.len().max(b.builds.len()) > 1;
    for (first, second) in a.builds.iter().zip(&b.builds) {
        let of =
            |what: &str| if several { format!("{what} of build {}", first.build) } else { what.to_owned() };
        let both: [&Build; 2] = [first, second];
        sheet.put(of("returned"), both.map(|build| build.engine));
        sheet.put(of("bytes"), both.map(|build| build.bytes));
        sheet.put(of("hash of what was built"), both.map(|build| build.config_hash.as_ref()));
    }
    let places = [one, other].map(|side| placed(&side.inventory));
    sheet.put_all("", &places[0], &places[1]);
    sheet.section()
}

/// What stands at the place of each artifact, by the last name of its path: folders may differ.
fn placed(inventory: &Inventory) -> BTreeMap<String, String> {
    let told = |artifact: &Artifact| {
        let name = artifact.path.rsplit('/').next().unwrap_or_default();
        let content = artifact.after.as_ref().map_or_else(
            || "nothing".to_owned(),
            |after| {
                format!("{} bytes, SHA-256 {}", after.bytes, after.sha256.as_deref().unwrap_or("not known"))
            },
        );
        (format!("artifact {} ({name})", artifact.artifact), content)
    };
    inventory.artifacts.iter().map(told).collect()
}

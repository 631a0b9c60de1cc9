//! The JSON Schema of the bundle's files, generated from their types.

use super::{Evidence, Inventory, Phases, Summary};
use crate::artifact::quarantine::Record;
use crate::attempts::Attempts;
use crate::baseline::Baseline;
use crate::event::event_schema;
use crate::resources;
use crate::seal::addendum::Addendum;
use crate::seal::{Manifest, Predicate, Statement};
use crate::sign::Envelope;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema of `evidence-schema.json`: its root is `summary.json`; `$defs/evidence`, `$defs/phases`,
/// `$defs/inventory`, `$defs/baseline`, `$defs/manifest` and `$defs/event` are `evidence.json`, `phases.json`,
/// `inventory.json`, `baseline.json`, `manifest.json` and one line of `events.jsonl`; `$defs/envelope` and
/// `$defs/statement` are a signature and what it says, `$defs/addendum` is a file of the folder beside the bundle,
/// `$defs/quarantineRecord` is `record.json` of an entry in the quarantine. `$defs/resourceHeader` and
/// `$defs/resourceSample` are the first line and every other line of `resources.jsonl`, and `$defs/attempts` is `attempts.json`
/// of a job that may be tried again.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.meta_schema = None)
        .into_generator();
    let summary = generator.root_schema_for::<Summary>().to_value();
    generator.subschema_for::<Evidence>();
    generator.subschema_for::<Phases>();
    generator.subschema_for::<Inventory>();
    generator.subschema_for::<Record>();
    generator.subschema_for::<Baseline>();
    generator.subschema_for::<resources::Header>();
    generator.subschema_for::<resources::Sample>();
    generator.subschema_for::<Manifest>();
    generator.subschema_for::<Envelope>();
    generator.subschema_for::<Statement<Predicate>>();
    generator.subschema_for::<Addendum>();
    generator.subschema_for::<Attempts>();
    let event = event_schema(&mut generator).to_value();
    generator.definitions_mut().insert("event".to_owned(), event);
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": generator.take_definitions(true)
    });
    if let (Some(root), Value::Object(summary)) = (root.as_object_mut(), summary) {
        let own = summary.into_iter().filter(|(key, _)| key != "$defs" && key != "$schema");
        own.for_each(|(key, value)| {
            root.insert(key, value);
        });
    }
    root
}

//! `evidence-schema.json` is what the types say.

use std::path::Path;

/// Set to 1, this variable makes the test write the file instead of comparing it.
const UPDATE: &str = "STUCKPROOF_UPDATE_SCHEMA";

#[test]
fn the_schema_on_record_is_the_one_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("evidence-schema.json");
    let mut schema = serde_json::to_string_pretty(&stuckproof::evidence::schema()).expect("a schema is JSON");
    schema.push('\n');
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
        std::fs::write(&path, &schema).expect("the schema can be written");
    }
    let recorded = std::fs::read_to_string(&path).expect("evidence-schema.json is in the repository");
    assert_eq!(recorded, schema, "run this test with {UPDATE}=1 and commit evidence-schema.json");
}

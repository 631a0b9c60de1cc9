//! The documents keep up with the code: every field of the schema is explained, and no link leads nowhere.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The names of all properties in a schema.
fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                found.extend(properties.keys().cloned());
            }
            map.values().for_each(|inner| fields(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| fields(inner, found)),
        _ => {}
    }
}

/// The documents at the top and in `docs/`.
fn documents() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join("docs")).expect("there are documents");
    let in_docs = entries.map(|entry| Path::new("docs").join(entry.expect("an entry").file_name()));
    in_docs
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .chain(["README.md", "CHANGELOG.md"].map(PathBuf::from))
        .collect()
}

/// What a document links to, without anchors and without the web.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter_map(|target| target.split('#').next());
    files.filter(|target| !target.is_empty() && !target.starts_with("https:")).collect()
}

#[test]
fn every_field_of_the_schema_is_explained() {
    let schema = serde_json::from_str(&read("evidence-schema.json")).expect("the schema is JSON");
    let mut names = BTreeSet::new();
    fields(&schema, &mut names);
    assert!(names.len() > 50, "the schema has fields");
    let explained = read("docs/evidence.md");
    let missing: Vec<_> = names.iter().filter(|name| !explained.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/evidence.md does not mention {missing:?}");
}

#[test]
fn every_link_leads_to_a_file() {
    for document in documents() {
        let folder = document.parent().expect("a folder");
        for link in links(&read(&document)) {
            let target = repository().join(folder).join(link);
            assert!(target.exists(), "{} links to {link}", document.display());
        }
    }
}

/// Set to 1, this variable makes the test write the table instead of comparing it.
const UPDATE_HOSTS: &str = "STUCKPROOF_UPDATE_HOSTS";

#[test]
fn the_table_of_hosts_is_the_one_in_the_code() {
    const TABLE: &str = "<!-- the table of the code -->\n";
    let path = repository().join("docs/hosts.md");
    let text = read(&path);
    let parts: Vec<&str> = text.split(TABLE).collect();
    let [before, recorded, after] = parts[..] else { panic!("docs/hosts.md marks no table") };
    let table = stuckproof::supervise::host_table();
    if std::env::var_os(UPDATE_HOSTS).is_some_and(|value| value == "1") {
        let text = [before, &table, after].join(TABLE);
        std::fs::write(path, text).expect("the document can be written");
    } else {
        assert_eq!(recorded, table, "run this test with {UPDATE_HOSTS}=1 and commit docs/hosts.md");
    }
}

/// The YAML in a section of the recipes.
fn recipes(section: &str) -> Vec<String> {
    let text = read("docs/ci-recipes.md");
    let after =
        text.split(&format!("\n## {section}\n")).nth(1).unwrap_or_else(|| panic!("no section {section}"));
    let body = after.split("\n## ").next().unwrap_or_default();
    let blocks = body.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.map(str::to_owned).collect()
}

#[test]
fn every_recipe_is_what_its_host_reads() {
    let validator = repository().join(".rig/lint/bin/check-jsonschema");
    assert!(validator.exists(), "{} is missing: run scripts/rig", validator.display());
    let indented = |text: &str| format!("      {}\n", text.trim_end().replace('\n', "\n      "));
    let folder = tempfile::tempdir().expect("a folder");
    let sections = [
        ("GitHub Actions", "vendor.github-workflows", 2),
        ("GitLab CI", "vendor.gitlab-ci", 2),
        ("Buildkite", "vendor.buildkite", 1),
        ("Azure Pipelines", "vendor.azure-pipelines", 1),
    ];
    for (section, schema, expected) in sections {
        let found = recipes(section);
        assert_eq!(found.len(), expected, "{section}");
        for (place, recipe) in found.iter().enumerate() {
            let whole = match section {
                "GitHub Actions" => {
                    format!("on: push\njobs:\n  build:\n    runs-on: x\n    steps:\n{}", indented(recipe))
                }
                _ => recipe.clone(),
            };
            let file = folder.path().join(format!("{place}.yml"));
            std::fs::write(&file, whole).expect("a file");
            let done = std::process::Command::new(&validator)
                .args(["--builtin-schema", schema])
                .arg(&file)
                .output()
                .expect("the validator starts");
            assert!(
                done.status.success(),
                "{section}, recipe {place}: {}",
                String::from_utf8_lossy(&done.stdout)
            );
        }
    }
}

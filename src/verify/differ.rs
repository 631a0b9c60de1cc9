//! Where two JSON documents part.

use serde_json::Value;

/// The path of the first difference, `builds.0.state`; empty where they are no JSON, or differ in their form only.
pub(super) fn first(wanted: &[u8], found: &[u8]) -> String {
    let (Ok(wanted), Ok(found)) = (serde_json::from_slice(wanted), serde_json::from_slice(found)) else {
        return String::new();
    };
    let mut path = Vec::new();
    walk(&wanted, &found, &mut path);
    path.join(".")
}

/// Whether they part below here; the path then leads to the place.
fn walk(wanted: &Value, found: &Value, path: &mut Vec<String>) -> bool {
    let mut inside = |name: String, wanted: &Value, found: &Value| {
        path.push(name);
        let parted = walk(wanted, found, path);
        if !parted {
            path.pop();
        }
        parted
    };
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            let names = wanted.keys().chain(found.keys().filter(|name| !wanted.contains_key(*name)));
            let none = Value::Null;
            for name in names {
                let both = (wanted.get(name), found.get(name));
                if both.0.is_some() != both.1.is_some() {
                    path.push(plain(name));
                    return true;
                }
                if inside(plain(name), both.0.unwrap_or(&none), both.1.unwrap_or(&none)) {
                    return true;
                }
            }
            false
        }
        (Value::Array(wanted), Value::Array(found)) => {
            for (place, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                if inside(place.to_string(), wanted, found) {
                    return true;
                }
            }
            if wanted.len() != found.len() {
                path.push(wanted.len().min(found.len()).to_string());
            }
            wanted.len() != found.len()
        }
        _ => wanted != found,
    }
}

/// A name that may be a stranger's.
fn plain(name: &str) -> String {
    name.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let one = br#"{"a":1,"b":[{"c":2},{"c":3}]}"#;
        for (other, path) in [
            (&br#"{"a":1,"b":[{"c":2},{"c":3}]}"#[..], ""),
            (br#"{"a":1, "b":[{"c":2},{"c":3}]}"#, ""),
            (br#"{"a":1,"b":[{"c":2},{"c":4}]}"#, "b.1.c"),
            (br#"{"a":1,"b":[{"c":2}]}"#, "b.1"),
            (br#"{"a":1}"#, "b"),
            (br#"{"a":1,"b":[{"c":2},{"c":3}],"d":null}"#, "d"),
            (b"?", ""),
        ] {
            assert_eq!(first(one, other), path);
        }
    }
}

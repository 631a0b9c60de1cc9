"""Checks bundles against evidence-schema.json with a validator that is not ours. Usage: validate.py BUNDLE..."""

import base64
import json
import pathlib
import sys

import jsonschema

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "evidence-schema.json"


def validator(schema: dict, rule: dict) -> jsonschema.Draft202012Validator:
    """For one rule of the schema, with the schema's definitions at hand."""
    return jsonschema.Draft202012Validator({"$schema": schema["$schema"], "$defs": schema["$defs"], **rule})


def faults(checker: jsonschema.Draft202012Validator, place: str, document: object) -> list[str]:
    """What is wrong with one document."""
    return [f"{place}: {error.json_path}: {error.message[:300]}" for error in checker.iter_errors(document)]


def check_files(bundle: pathlib.Path, schema: dict) -> list[str]:
    """What is wrong with the documents. The summary is the schema's root."""
    found = []
    for name, rule in (
        ("summary.json", schema),
        ("evidence.json", {"$ref": "#/$defs/evidence"}),
        ("phases.json", {"$ref": "#/$defs/phases"}),
        ("inventory.json", {"$ref": "#/$defs/inventory"}),
    ):
        found += faults(validator(schema, rule), name, json.loads((bundle / name).read_text()))
    # A log that was derived again elsewhere has no baseline.
    if (baseline := bundle / "baseline.json").exists():
        rule = {"$ref": "#/$defs/baseline"}
        found += faults(validator(schema, rule), baseline.name, json.loads(baseline.read_text()))
    # Only what is finished is sealed, and a signature and what it says are checked where there is one.
    if (manifest := bundle / "manifest.json").exists():
        rule = {"$ref": "#/$defs/manifest"}
        found += faults(validator(schema, rule), manifest.name, json.loads(manifest.read_text()))
    if (signature := bundle / "manifest.sig.json").exists():
        envelope = json.loads(signature.read_text())
        statement = json.loads(base64.b64decode(envelope["payload"], validate=True))
        for rule, document in (("envelope", envelope), ("statement", statement)):
            found += faults(validator(schema, {"$ref": f"#/$defs/{rule}"}), signature.name, document)
    return found


def check_log(bundle: pathlib.Path, schema: dict) -> list[str]:
    """What is wrong with the log.

    A line's `event` fits one alternative only, so that one is checked; the first line of each kind is checked against
    all of them. That is many times faster than all alternatives for each line.
    """
    whole = validator(schema, {"$ref": "#/$defs/event"})
    rules = schema["$defs"]["event"]["oneOf"]
    alternatives = {rule["properties"]["event"]["const"]: validator(schema, rule) for rule in rules}
    found, seen = [], set()
    for number, line in enumerate((bundle / "events.jsonl").read_text().splitlines(), start=1):
        document = json.loads(line)
        kind = document.get("event")
        known = kind in seen and kind in alternatives
        found += faults(alternatives[kind] if known else whole, f"events.jsonl:{number}", document)
        seen.add(kind)
    return found


def check_resources(bundle: pathlib.Path, schema: dict) -> list[str]:
    """What is wrong with the samples. A killed runner may leave a torn last line, and a job that never began none."""
    name = "resources.jsonl"
    if not (bundle / name).exists():
        return []
    lines = (bundle / name).read_bytes().split(b"\n")[:-1]
    rules = [validator(schema, {"$ref": f"#/$defs/{rule}"}) for rule in ("resourceHeader", "resourceSample")]
    found = []
    for number, line in enumerate(lines, start=1):
        found += faults(rules[number > 1], f"{name}:{number}", json.loads(line))
    return found


def check_all(bundle: pathlib.Path, schema: dict) -> list[str]:
    """What is wrong with a bundle, or with all attempts at a job and the record of them."""
    if (record := bundle / "attempts.json").exists():
        document = json.loads(record.read_text())
        found = faults(validator(schema, {"$ref": "#/$defs/attempts"}), record.name, document)
        found += faults(validator(schema, schema), "summary.json", json.loads((bundle / "summary.json").read_text()))
        for attempt in document["attempts"]:
            name = attempt["bundle"]
            found += [f"{name}/{fault}" for fault in check_all(bundle / name, schema)]
        return found
    return check_files(bundle, schema) + check_log(bundle, schema) + check_resources(bundle, schema)


def main() -> int:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    bundles = [pathlib.Path(argument) for argument in sys.argv[1:]]
    found = []
    for bundle in bundles:
        found += [f"{bundle}: {fault}" for fault in check_all(bundle, schema)]
    print("\n".join(found[:20]) if found else f"{len(bundles)} bundle(s) fit the schema")
    return 1 if found or not bundles else 0


if __name__ == "__main__":
    sys.exit(main())

"""Checks bundles against evidence-schema.json with a validator that is not ours. Usage: validate.py BUNDLE..."""

import json
import pathlib
import sys

import jsonschema

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "evidence-schema.json"


def validator(schema: dict, definition: str | None) -> jsonschema.Draft202012Validator:
    """For the schema's root, or for one of its definitions."""
    if definition is not None:
        schema = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def faults(checker: jsonschema.Draft202012Validator, place: str, text: str) -> list[str]:
    """What is wrong with one document."""
    return [f"{place}: {error.json_path}: {error.message[:300]}" for error in checker.iter_errors(json.loads(text))]


def check(bundle: pathlib.Path, schema: dict) -> list[str]:
    """What is wrong with a bundle."""
    found = []
    for name, definition in (("summary.json", None), ("evidence.json", "evidence"), ("phases.json", "phases")):
        found += faults(validator(schema, definition), name, (bundle / name).read_text())
    event = validator(schema, "event")
    for number, line in enumerate((bundle / "events.jsonl").read_text().splitlines(), start=1):
        found += faults(event, f"events.jsonl:{number}", line)
    return found


def main() -> int:
    schema = json.loads(SCHEMA.read_text())
    bundles = [pathlib.Path(argument) for argument in sys.argv[1:]]
    found = [f"{bundle}: {fault}" for bundle in bundles for fault in check(bundle, schema)]
    print("\n".join(found[:20]) if found else f"{len(bundles)} bundle(s) fit the schema")
    return 1 if found or not bundles else 0


if __name__ == "__main__":
    sys.exit(main())

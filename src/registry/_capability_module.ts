/**
 * Creates the module that `import()` receives for a saved capability.
 *
 * @module
 */

import { type JsonObject, textOf } from "../core/json.ts";
import { parseJson } from "../core/parse_json.ts";
import ofCode from "./importable_code.min.js" with { type: "text" };
import ofPlan from "./importable_plan.min.js" with { type: "text" };

/** Matches the export at the end of a runtime, which is replaced by a variable. */
const EXPORT = /export\s*\{\s*([\w$]+) as imported\s*\};?\s*$/;
/** `await import()` would treat a module with an export of this name as a promise. */
const THENABLE = "then";

/**
 * Returns a module that exports the function of a capability. The module contains the content as a
 * string, so that loading the module does not run it.
 */
export function capabilityModule(content: Uint8Array, manifest: JsonObject): Uint8Array {
  const { fqdn, version, description, integrity, tools } = manifest;
  const [name, tool = ""] = textOf(fqdn).split(":");
  const { kind, code, plan } = parseJson(new TextDecoder().decode(content));
  const runtime = (kind === "plan" ? ofPlan : ofCode).replace(EXPORT, "const imported=$1;");
  const meta = { name, version, description, tools: Object.fromEntries(toolEntries(tools)) };
  const names = [...new Set([tool, "default"])].filter((one) => one !== THENABLE);
  return new TextEncoder().encode(
    `// A capability, made of the content ${
      textOf(integrity)
    }. Its function gets its arguments and\n` +
      "// the tools that it may call: `tools` of an open gateway of PML.\n" +
      `${runtime}\n` +
      `const run=imported(${literal(kind === "plan" ? { plan } : { code })},${literal(fqdn)});\n` +
      `export const __meta__=${literal(meta)};\n` +
      `export{${names.map((one) => `run as ${literal(one, false)}`).join(",")}};\n`,
  );
}

function toolEntries(tools: unknown): readonly (readonly [string, object])[] {
  const all = Array.isArray(tools) ? tools as readonly JsonObject[] : []; // checked when it was added
  return all.map(({ name, ...rest }) => [textOf(name), rest]);
}

/** Returns code for a value: a JSON string, because `__proto__` in a literal sets the prototype. */
function literal(value: unknown, isParsed = typeof value !== "string"): string {
  const text = JSON.stringify(value ?? null).replace(
    /[\u2028\u2029]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16)}`,
  );
  return isParsed ? `JSON.parse(${JSON.stringify(text)})` : text;
}

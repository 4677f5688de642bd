/**
 * The public API of the registry room: names, hashes and module metadata, in the form that
 * registries, locks and the gateway share.
 *
 * @example
 * ```ts
 * import { integrityOf, parseFqdn } from "@casys/pml/registry";
 *
 * parseFqdn("fs:read_json@1.2.0"); // { name: "fs", action: "read_json", version: "1.2.0" }
 * integrityOf(new TextEncoder().encode("export const x = 1;")); // "sha256-…"
 * ```
 *
 * @module
 */

export { definitionHash, integrityOf } from "./integrity.ts";
export { type Fqdn, parseFqdn } from "./fqdn.ts";
export { type ModuleMeta, type ModuleTool, parseModuleMeta } from "../core/tool.ts";
export type { Permissions, ToolDefinition } from "../core/tool.ts";
export type { Json, JsonObject } from "../core/json.ts";
export { type Audience, type ErrorCode, PmlError, type PmlErrorOptions } from "../core/errors.ts";

/**
 * Reads a `.pml.json`.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { isObject } from "../core/json.ts";
import { DocumentReader } from "./_document.ts";
import type { Report } from "./_problem.ts";
import type { ReportAt, Syntax } from "./_syntax.ts";
import type { Path } from "../core/value_schema.ts";
import { gatewayOptions, type GatewayOverrides } from "./gateway_options.ts";
import { registriesOf, type RegistryEntry } from "./registries.ts";
import { type Rules, rulesOf } from "./rules.ts";
import { workspaceSchema } from "./settings.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { disabledNames, serversOf } from "./servers.ts";
import type { Grants } from "./server_grants.ts";

/** A `.pml.json` that was read and is valid. */
export interface WorkspaceFile {
  readonly path: string;
  readonly realPath: string;
  /** The hash of the exact bytes: `sha256-` and hexadecimal digits. */
  readonly hash: string;
  /** The part of the workspace that tools may touch, relative to its root. */
  readonly workspace: string | undefined;
  /** The rules; undefined if the key is missing. Then the default rules apply. */
  readonly permissions: Rules | undefined;
  readonly servers: readonly ServerDefinition[];
  /** The names of the servers that the file disables. */
  readonly disabled: readonly string[];
  readonly sections: Sections;
}

/**
 * The other sections, which are ignored until the file is trusted. A missing section is undefined.
 */
export interface Sections {
  readonly registries: readonly RegistryEntry[] | undefined;
  readonly cloud: { readonly url?: string } | undefined;
  readonly grants: Grants | undefined;
  readonly gateway: GatewayOverrides | undefined;
  readonly intent: string | undefined;
}

/**
 * Reads a file. Returns undefined if the file is missing or invalid. Reports each of its problems.
 */
export async function readWorkspaceFile(
  path: string,
  report: Report,
): Promise<WorkspaceFile | undefined> {
  const { problems, warnings } = report;
  const [problemCount, warningCount] = [problems.length, warnings.length];
  const file = await readWith(new DocumentReader(parsePlain, report), path);
  if (problems.length === problemCount) return file;
  problems.length = problemCount;
  warnings.length = warningCount;
  const { parseJsonc } = await import("./_syntax.ts");
  return await readWith(new DocumentReader(parseJsonc, report), path);
}

async function readWith(
  reader: DocumentReader,
  path: string,
): Promise<WorkspaceFile | undefined> {
  const read = await reader.read(path, workspaceSchema);
  if (read === undefined) return undefined;
  const { content: { workspace, permissions, registries, cloud, grants, gateway, intent } } = read;
  const servers = serversOf(read);
  if (read.hasProblems()) return undefined;
  return {
    path,
    realPath: read.realPath,
    hash: read.hash,
    workspace,
    permissions: permissions && rulesOf(permissions, path),
    servers,
    disabled: disabledNames(read),
    sections: {
      registries: registriesOf(registries),
      cloud,
      // Without a prototype, so that names such as `constructor` match only written keys.
      grants: grants && Object.assign(Object.create(null), grants),
      gateway: gateway && gatewayOptions(gateway, read.warn),
      intent,
    },
  };
}

/**
 * Parses JSON without comments and escapes without a library: most files are like this, and loading
 * a library takes a tenth of a start. For any other text it reports an empty problem; then
 * `parseJsonc` reads the text.
 */
export function parsePlain(text: string, note: ReportAt): Syntax | undefined {
  let keys = 1;
  try {
    const value: unknown = JSON.parse(text, (_, part) => {
      if (isObject(part)) keys += Object.keys(part).length;
      return part;
    });
    // `JSON.parse` drops one of two keys with the same name, so that the counts differ.
    const colons = text.replace(/"[^"]*"/g, "").split(":").length;
    if (colons === keys && !/\\|"__proto__"/.test(text)) {
      let exact: unknown;
      const exactAt = (path: Path) =>
        path.reduce((part, key) => Object(part)[key], exact ??= parseExact(text));
      return { value, offsetOf: () => 0, exactAt };
    }
  } catch {
    // It is not valid.
  }
  note(0, { found: "", wanted: "" });
  return undefined;
}

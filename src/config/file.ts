/**
 * Reads a `.pml.json`.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { isObject } from "../core/json.ts";
import { type DocumentOptions, readDocument } from "./_document.ts";
import type { Report } from "./_problem.ts";
import type { Note, Syntax } from "./_syntax.ts";
import type { Path } from "../core/wanted.ts";
import { gatewayOptions, type GatewayOverrides } from "./gateway_options.ts";
import { registriesOf, type RegistryEntry } from "./registries.ts";
import { type Rules, rulesOf } from "./rules.ts";
import { workspaceSchema } from "./settings.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { disabledIn, serversOf } from "./servers.ts";
import type { Grants } from "./server_grants.ts";

/** A `.pml.json` that was read and is valid. */
export interface WorkspaceFile {
  readonly path: string;
  readonly realPath: string;
  /** The hash of the exact bytes: `sha256-` and hexadecimal digits. */
  readonly hash: string;
  /** The part of the workspace that tools may touch, relative to its root. */
  readonly workspace: string | undefined;
  /** The rules; undefined if the key is missing. Then the default rules hold. */
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
 * Reads a file. Returns undefined if it is missing, or if it contains an error, which it
 * reports.
 */
export async function readWorkspaceFile(
  path: string,
  report: Report,
): Promise<WorkspaceFile | undefined> {
  const { problems, warnings } = report;
  const [before, warned] = [problems.length, warnings.length];
  const file = await readWith(parsePlain, path, report);
  if (problems.length === before) return file;
  problems.length = before;
  warnings.length = warned;
  return await readWith((await import("./_syntax.ts")).parseJsonc, path, report);
}

async function readWith(
  parse: DocumentOptions<unknown>["parse"],
  path: string,
  report: Report,
): Promise<WorkspaceFile | undefined> {
  const read = await readDocument(path, {
    report,
    parse,
    schema: workspaceSchema,
  });
  if (read === undefined) return undefined;
  const { content: { workspace, permissions, registries, cloud, grants, gateway, intent } } = read;
  const servers = serversOf(read);
  if (read.isBad()) return undefined;
  return {
    path,
    realPath: read.realPath,
    hash: read.hash,
    workspace,
    permissions: permissions && rulesOf(permissions, path),
    servers,
    disabled: disabledIn(read),
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
 * Parses JSON without comments and escapes, which most files are, with no library: loading one takes a
 * tenth of a start. For other texts it only reports that; `parseJsonc` reports their problems.
 */
export function parsePlain(text: string, note: Note): Syntax | undefined {
  let keys = 1;
  try {
    const value: unknown = JSON.parse(text, (_, part) => {
      if (isObject(part)) keys += Object.keys(part).length;
      return part;
    });
    // Of two keys with the same name, one was dropped.
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

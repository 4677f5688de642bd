/**
 * The names of the tools of each server, stored in a file: the instructions for a client contain them
 * before PML has asked any server for its tools.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { sha256, sha256Async } from "../../core/hash.ts";
import { isObject, type JsonObject, listOf, textOf } from "../../core/json.ts";
import { parseToolId, type ToolId } from "../../core/tool_id.ts";
import { isForModel } from "../../protocol/apps.ts";
import { pruneCache, readCache, writeCache } from "../../io/kept.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Catalog, CatalogEntry } from "../../search/catalog.ts";
import type { Config } from "../../config/current_config.ts";
import type { Server } from "../server.ts";
import type { Lists } from "./lists.ts";
import type { Verdict } from "../../protocol/verdict.ts";

/** A tool that instructions may name. */
export interface ToolAtHand {
  readonly name: string;
  /** The name with the parameters; undefined if PML has not written them yet. */
  readonly call?: string | undefined;
}

/** The tools of each server, by name. */
export type ToolsAtHand = ReadonlyMap<string, readonly ToolAtHand[]>;

/** The maximum number of files, which are one for each workspace and identity. */
const FILES_MAX = 64;
/** The maximum number of tools of a server that are stored: more would not fit into instructions. */
const TOOLS_MAX = 2_000;

/** A longer call is cut. */
const CALL_MAX = 160;

/** A tool with its id in rules, and the name that clients see. */
interface NamedTool extends ToolAtHand {
  readonly id: ToolId;
}

/** The tools of a server, and the hash of its definition. */
interface NamedServer {
  readonly hash: string;
  readonly tools: readonly NamedTool[];
}

/** The tools of a server that an earlier process wrote. They belong to this definition. */
interface RecalledServer {
  readonly definition: object | undefined;
  readonly tools: readonly NamedTool[];
}

/** The PML whose tools are named. `App` implements it. */
export interface ToolNamesHost {
  readonly catalog: Pick<Catalog, "list" | "toolsOf">;
  readonly servers: { readonly lists: Pick<Lists, "entries"> };
  readonly policy: { readonly now: { readonly judge: (id: ToolId) => Verdict } };
  config(): Config;
}

/** The names of the tools of all servers of a workspace. */
export class ToolNames {
  readonly #host: ToolNamesHost;
  /** The tools that an earlier process wrote, with the definitions of their servers. */
  readonly #recalled = new Map<string, RecalledServer>();
  /** The list of the catalog that was written last, and the text. */
  #written: readonly CatalogEntry[] | undefined;
  #text: string | undefined;
  /** The calls of the tools that were written. */
  readonly #calls = new WeakMap<ToolDefinition, string>();

  /** Takes the PML. Reads nothing yet. */
  constructor(host: ToolNamesHost) {
    this.#host = host;
  }

  /**
   * Returns the tools of each server that models may be shown, as far as they are known. Tools that a rule denies are left out.
   */
  atHand(): ToolsAtHand {
    const { servers, policy } = this.#host;
    const names = new Map<string, readonly ToolAtHand[]>();
    for (const server of servers.lists.entries.keys()) {
      const tools = this.#toolsOf(server);
      if (tools === undefined) continue;
      const shown: ToolAtHand[] = [];
      for (const { id, ...tool } of tools) {
        // guard: names-denied
        if (policy.now.judge(id).kind === "deny") continue;
        shown.push(tool);
      }
      names.set(server, shown.sort(byName));
    }
    return names;
  }

  /** Reads the names that an earlier process wrote. */
  async recall(): Promise<void> {
    const file = this.#fileOf(await sha256Async(this.#place()));
    const content = new Map(serversIn(readCache(file)));
    if (content.size === 0) return;
    for (const { source } of this.#host.servers.lists.entries.values()) {
      const { hash, tools } = content.get(source.name) ?? {};
      const isSame = hash !== undefined && hash === await sha256Async(definitionText(source));
      if (!isSame || tools === undefined) continue;
      this.#recalled.set(source.name, { definition: source.definition, tools });
    }
  }

  /** Writes the names, if there are others than before. They are a cache: a failure is ignored. */
  async keep(): Promise<void> {
    const list = this.#host.catalog.list();
    if (list === this.#written || this.#host.config().problem !== undefined) return;
    this.#written = list;
    const { signatureOf } = await import("../../search/signature.ts");
    for (const { tool } of list) {
      // The type of a result does not help to call a tool, and most parameters are texts.
      const { name, inputSchema } = tool;
      const call = signatureOf({ name, inputSchema }, CALL_MAX).replaceAll(/: string(?=[,)])/g, "");
      this.#calls.set(tool, call);
    }
    const servers = [...this.#host.servers.lists.entries.values()].flatMap(({ source }) => {
      const tools = this.#toolsOf(source.name)
        ?.map(({ id, name, call = "" }) => [id, name, call]);
      return tools === undefined
        ? []
        : [[source.name, { hash: sha256(definitionText(source)), tools }] as const];
    });
    const content = { servers: Object.fromEntries(servers) };
    const text = JSON.stringify(content);
    if (servers.length === 0 || text === this.#text) return;
    this.#text = text;
    try {
      const file = this.#fileOf(sha256(this.#place()));
      writeCache(file, content);
      pruneCache(dirname(file), { like: file, most: FILES_MAX });
    } catch {
      // The next process has no names until it has the lists.
    }
  }

  /** Returns the tools of a server for models; undefined if they are unknown. */
  #toolsOf(server: string): readonly NamedTool[] | undefined {
    const { catalog, servers } = this.#host;
    const entry = servers.lists.entries.get(server);
    if (entry === undefined || entry.source.blocked() !== undefined) return undefined;
    if (!entry.lists.has("tools")) {
      const { definition, tools } = this.#recalled.get(server) ?? {};
      return definition === entry.source.definition ? tools : undefined;
    }
    return catalog.toolsOf(server).filter(({ tool }) => isForModel(tool)).slice(0, TOOLS_MAX)
      .map(({ id, tool }) => ({ id, name: tool.name, call: this.#calls.get(tool) }));
  }

  #place(): string {
    const { workspace, narrowing } = this.#host.config();
    return JSON.stringify([workspace, narrowing?.identity?.name ?? null]);
  }

  #fileOf(hash: string): string {
    return join(this.#host.config().home, "names", `${hash.slice(0, 32)}.json`);
  }
}

/** Returns everything on which the tools of a server depend, as far as the configuration has it. */
function definitionText({ name, definition, settings }: Server): string {
  return JSON.stringify([name, definition ?? null, [...settings?.of ?? []]]);
}

function byName(one: ToolAtHand, other: ToolAtHand): number {
  return one.name < other.name ? -1 : 1;
}

function serversIn(json: unknown): readonly (readonly [string, NamedServer])[] {
  if (!isObject(json) || !isObject(json.servers)) return [];
  return Object.entries(json.servers as JsonObject).flatMap(([server, value]) => {
    const { hash, tools } = isObject(value) ? value : {};
    if (typeof hash !== "string") return [];
    const named = listOf(tools).flatMap((pair) => {
      const [id, name, call] = listOf(pair).map(textOf);
      const parsed = id === undefined ? undefined : parseToolId(id);
      return parsed === undefined || !name ? [] : [{ id: parsed, name, call: call || undefined }];
    });
    return [[server, { hash, tools: named }] as const];
  });
}

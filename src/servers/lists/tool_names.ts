/**
 * Stores the names of each server's tools in a file, so that the instructions for a client can
 * contain them before PML has requested any list.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { sha256, sha256Async } from "../../core/hash.ts";
import { isObject, type JsonObject, listOf, textOf } from "../../core/json.ts";
import { parseToolId, type ToolId } from "../../core/tool_id.ts";
import { isForModel } from "../../protocol/apps.ts";
import { pruneCache, readCache, writeCache } from "../../io/cache_files.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Catalog, CatalogEntry } from "../../search/catalog.ts";
import type { Config } from "../../config/current_config.ts";
import type { Server } from "../server.ts";
import type { Lists } from "./lists.ts";
import type { Verdict } from "../../protocol/verdict.ts";

/** A tool that instructions may name. */
export interface ModelTool {
  readonly name: string;
  /** The name with the parameters; undefined if PML has not written them yet. */
  readonly call?: string | undefined;
  /** The name with the required parameters; undefined if PML has not written them yet. */
  readonly shortCall?: string | undefined;
}

/** The tools of each server, by name. */
export type ModelTools = ReadonlyMap<string, readonly ModelTool[]>;

/** The maximum number of files. Each workspace, with each identity, has a file. */
const FILES_MAX = 64;
/**
 * The maximum number of tools of a server that are stored: more would not fit into instructions.
 */
const TOOLS_MAX = 2_000;

/** The maximum length of a stored call, in characters. A longer call is cut. */
const CALL_MAX = 160;

/** A tool with its id, which rules use, and the name that clients see. */
interface NamedTool extends ModelTool {
  readonly id: ToolId;
}

/** The tools of a server, and the hash of its definition. */
interface NamedServer {
  readonly hash: string;
  readonly tools: readonly NamedTool[];
}

/** The tools of a server that an earlier process wrote, and the definition to which they belong. */
interface RecalledServer {
  readonly definition: object | undefined;
  readonly tools: readonly NamedTool[];
}

/** The services of PML that tool names use. `App` implements it. */
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
  /** The list of the catalog that was written last. */
  #written: readonly CatalogEntry[] | undefined;
  /** The content of the file that was written last. */
  #text: string | undefined;
  /** The texts that show how to call the tools that were written. */
  readonly #calls = new WeakMap<ToolDefinition, Pick<ModelTool, "call" | "shortCall">>();

  /** Reads nothing yet. */
  constructor(host: ToolNamesHost) {
    this.#host = host;
  }

  /**
   * Returns the known tools of each server that models may see. Leaves out tools that a rule
   * denies.
   */
  modelTools(): ModelTools {
    const { servers, policy } = this.#host;
    const names = new Map<string, readonly ModelTool[]>();
    for (const server of servers.lists.entries.keys()) {
      const tools = this.#toolsOf(server);
      if (tools === undefined) continue;
      const shown: ModelTool[] = [];
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
    const file = this.#fileOf(await sha256Async(this.#cacheKey()));
    const content = new Map(serversIn(readCache(file)));
    if (content.size === 0) return;
    for (const { source } of this.#host.servers.lists.entries.values()) {
      const { hash, tools } = content.get(source.name) ?? {};
      const isSame = hash !== undefined && hash === await sha256Async(definitionText(source));
      if (!isSame || tools === undefined) continue;
      this.#recalled.set(source.name, { definition: source.definition, tools });
    }
  }

  /** Writes the names if they have changed. Ignores failures, because the file is only a cache. */
  async write(): Promise<void> {
    const list = this.#host.catalog.list();
    if (list === this.#written || this.#host.config().problem !== undefined) return;
    this.#written = list;
    const { shortSignatureOf, signatureOf } = await import("../../search/signature.ts");
    for (const { tool } of list) {
      // Leaves out the type of the result, which does not help to call a tool.
      const { name, inputSchema } = tool;
      const call = signatureOf({ name, inputSchema }, CALL_MAX);
      this.#calls.set(tool, { call, shortCall: shortSignatureOf(tool, CALL_MAX) });
    }
    const servers = [...this.#host.servers.lists.entries.values()].flatMap(({ source }) => {
      const tools = this.#toolsOf(source.name)
        ?.map(({ id, name, call = "", shortCall = "" }) => [id, name, call, shortCall]);
      return tools === undefined
        ? []
        : [[source.name, { hash: sha256(definitionText(source)), tools }] as const];
    });
    const content = { servers: Object.fromEntries(servers) };
    const text = JSON.stringify(content);
    if (servers.length === 0 || text === this.#text) return;
    this.#text = text;
    try {
      const file = this.#fileOf(sha256(this.#cacheKey()));
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
    if (entry === undefined || entry.source.whyBlocked() !== undefined) return undefined;
    if (!entry.lists.has("tools")) {
      const { definition, tools } = this.#recalled.get(server) ?? {};
      return definition === entry.source.definition ? tools : undefined;
    }
    return catalog.toolsOf(server).filter(({ tool }) => isForModel(tool)).slice(0, TOOLS_MAX)
      .map(({ id, tool }) => ({ id, name: tool.name, ...this.#calls.get(tool) }));
  }

  #cacheKey(): string {
    const { workspace, restrictions } = this.#host.config();
    return JSON.stringify([workspace, restrictions?.identity?.name ?? null]);
  }

  #fileOf(hash: string): string {
    return join(this.#host.config().home, "names", `${hash.slice(0, 32)}.json`);
  }
}

/** Returns a text with all facts in the configuration on which the tools of a server depend. */
function definitionText({ name, definition, settings }: Server): string {
  return JSON.stringify([name, definition ?? null, [...settings?.of ?? []]]);
}

function byName(one: ModelTool, other: ModelTool): number {
  return one.name < other.name ? -1 : 1;
}

function serversIn(json: unknown): readonly (readonly [string, NamedServer])[] {
  if (!isObject(json) || !isObject(json.servers)) return [];
  return Object.entries(json.servers as JsonObject).flatMap(([server, value]) => {
    const { hash, tools } = isObject(value) ? value : {};
    if (typeof hash !== "string") return [];
    const named = listOf(tools).flatMap((pair) => {
      const [id, name, call, shortCall] = listOf(pair).map(textOf);
      const parsed = id === undefined ? undefined : parseToolId(id);
      if (parsed === undefined || !name) return [];
      return [{ id: parsed, name, call: call || undefined, shortCall: shortCall || undefined }];
    });
    return [[server, { hash, tools: named }] as const];
  });
}

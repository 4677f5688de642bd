/**
 * A gateway with servers of given tools, for tests of lists of tools.
 *
 * @module
 */

import { OWN, serverDouble } from "../servers/_server_double_test.ts";
import type { Verdict } from "../protocol/verdict.ts";
import type { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { Catalog } from "../search/catalog.ts";
import type { SearchOptions } from "../search/search.ts";
import type { HybridOptions } from "../config/exposure.ts";
import { selectTools } from "./exposure.ts";
import type { ExposureSettings } from "./options.ts";
import type { GatewayHost } from "./options.ts";
import { META_TOOLS } from "../config/exposure.ts";
import { RenderedLists } from "./rendered_lists.ts";
import { Servers } from "../servers/lists/servers.ts";

/** The tools of each server. */
export type Shelves = Readonly<Record<string, readonly ToolDefinition[]>>;

/** The score of each tool for any query. Other tools do not match. */
type Scores = Readonly<Record<string, number>>;

/** The other options of a scene. */
interface SceneOptions {
  readonly denied?: readonly string[];
  /** The servers that ship with PML. */
  readonly builtins?: readonly string[];
  readonly scores?: Scores;
  readonly problem?: PmlError;
  readonly search?: GatewayHost["search"];
  readonly showsPages?: boolean;
  readonly recent?: readonly ToolId[];
}

const HYBRID: HybridOptions = {
  exposeMetaTools: true,
  exposeUnderlyingTools: true,
  applySemanticFilter: true,
  maxUnderlyingTools: 50,
  semanticThreshold: 0.6,
  maxTokens: undefined,
  whitelistedTools: [],
  blacklistedTools: [],
};
const SETTINGS: ExposureSettings = {
  exposure: "hybrid",
  semantic: { most: 20, threshold: 0.7 },
  hybrid: HYBRID,
  metaTools: META_TOOLS,
  prefix: true,
  longNames: false,
  batchMax: 50,
  intent: undefined,
};
/** The names of all meta-tools. */
export const META = [...META_TOOLS];
/** Three servers, some of whose tools have the same name. */
export const ABC: Shelves = {
  a: tools("one", "two"),
  b: tools("one", "two", "x.y"),
  c: tools("one"),
};
/** The scores of some of their tools. */
export const FITS: Scores = { "b:two": 1, "a:one": 0.8, "c:one": 0.65, "a:two": 0.6, "b:one": 0.3 };

/** Returns tools with these names. */
export function tools(...names: readonly string[]): ToolDefinition[] {
  return names.map((name) => ({ name, description: `It does ${name}`, inputSchema: {} }));
}

/** A gateway whose search returns fixed scores, and applies only one rule. */
export class Scene implements Disposable {
  readonly catalog = new Catalog();
  readonly servers = new Servers({
    catalog: this.catalog,
    waitMs: () => 10_000,
    onChange: () => {},
  });
  readonly rendered = new RenderedLists();
  readonly asked: { query: unknown; options: SearchOptions }[] = [];
  started = 0;
  readonly #options: SceneOptions;

  constructor(shelves: Shelves, options: SceneOptions = {}) {
    this.#options = options;
    this.servers.lists.replace(
      Object.entries(shelves).map(([name, list]) =>
        serverDouble(name, {
          origin: { ...OWN, isShipped: options.builtins?.includes(name) === true },
          list: () => {
            this.started++;
            return Promise.resolve(list);
          },
        })
      ),
    );
  }

  async list(settings: Partial<ExposureSettings>, query?: string): Promise<readonly JsonObject[]> {
    const { denied = [], problem, search = this.#search } = this.#options;
    const { showsPages = false, recent } = this.#options;
    const judge = (id: ToolId): Verdict => {
      const kind = denied.includes(id) ? "deny" : "ask";
      return { kind, rule: "", source: "" };
    };
    const { servers, catalog, rendered } = this;
    const host = { servers, catalog, judge, configProblem: () => problem, search };
    const listed = { rendered, query, showsPages, recent };
    return await selectTools({ ...SETTINGS, ...settings }, host, listed);
  }

  async names(settings: Partial<ExposureSettings>, query?: string): Promise<string[]> {
    return (await this.list(settings, query)).map(({ name }) => String(name));
  }

  [Symbol.dispose]() {
    this.servers[Symbol.dispose]();
  }

  readonly #search: GatewayHost["search"] = (query, options) => {
    this.asked.push({ query, options });
    const { scores = {} } = this.#options;
    const hits = Object.entries(scores).sort(([, a], [, b]) => b - a).map(([id, score]) => ({
      id: id as ToolId,
      score,
      covered: score,
      tool: { name: id.slice(2), inputSchema: {} },
      server: { name: id.slice(0, 1), origin: "test" },
    })).filter(({ id, score }) => options.allowed?.(id) && score >= (options.threshold ?? 0))
      .slice(0, options.limit);
    const rest = { byQuery: [hits], unmet: [], isLoose: false, notes: [] };
    return Promise.resolve({ mode: "lexical", hits, ...rest });
  };
}

/** Returns the settings of `hybrid` with these options. */
export function hybrid(options: Partial<HybridOptions>): Partial<ExposureSettings> {
  return { exposure: "hybrid", hybrid: { ...HYBRID, ...options } };
}

/** Parses patterns. */
export function patterns(...texts: readonly string[]) {
  return texts.map((text) => parsePattern(text));
}

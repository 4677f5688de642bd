/**
 * A tool of a program that runs and has listed it: its calls are sent at once.
 *
 * @module
 */

import type { ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, objectOf, quoted } from "../core/json.ts";
import { instructionsIn, type ListItem } from "../core/lists.ts";
import type { Back, Cancel, QuickTool } from "../core/quick_tool.ts";
import { isUnsent, type Outages } from "../io/outages.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Pool } from "../io/pool.ts";
import { ErrorResponse } from "./_peer.ts";
import { afterSent, resultOf, toolError } from "./_answers.ts";
import type { DeclaredCapabilities } from "./_declared.ts";
import { urlElicitationsOf } from "./_url_elicitation.ts";
import { ownName } from "./_readable.ts";
import { isListed } from "./_listed_tools.ts";
import { FRESH_MS, type ListOwner, type ServerLists } from "./_server_lists.ts";
import { callTool } from "./_tasks.ts";
import type { Connection } from "./connection.ts";
import type { UpstreamServer } from "./upstreams.ts";

const METHOD = "tools/call";

/** What a quick tool stands in. */
export interface QuickParts {
  readonly pool: Pool<Connection>;
  readonly lists: ServerLists;
  readonly declared: DeclaredCapabilities;
  readonly outages: Outages;
  /** The servers whose next result names their restart. */
  readonly restarted: ReadonlySet<string>;
  /** Returns the present owner of the lists of a server. */
  readonly ownerOf: (server: UpstreamServer) => ListOwner;
}

/** Returns how a server is reached with the present values of variables. Throws if it cannot. */
type Way = () => UpstreamServer;

/** Finds tools whose servers are there. */
export class QuickServerTools {
  readonly #parts: QuickParts;

  /** Takes what connects to servers. */
  constructor(parts: QuickParts) {
    this.#parts = parts;
  }

  /** Returns a tool that can be called at once; undefined if its server has not listed it. */
  find(way: Way, definition: ToolDefinition): QuickTool | undefined {
    const { lists, ownerOf } = this.#parts;
    const { name } = definition;
    const listed = lists.known(ownerOf(way()), "tools")
      .find((tool) => tool.name === name || ownName(tool) === name);
    // While the call ran that passed with this definition, the server may have listed another one.
    const isSame = JSON.stringify(listed) === JSON.stringify(definition);
    return isSame && listed ? new QuickServerTool(this.#parts, way, listed) : undefined;
  }
}

/** A tool that its server has listed. */
class QuickServerTool implements QuickTool {
  readonly #parts: QuickParts;
  readonly #way: Way;
  readonly #server: UpstreamServer;
  readonly #version: string;
  readonly #owner: ListOwner;
  readonly #list: readonly ListItem[];
  readonly instructions: ToolDefinition | undefined;
  readonly #name: string;
  readonly #support: Json | undefined;

  constructor(parts: QuickParts, way: Way, tool: ListItem) {
    this.#parts = parts;
    this.#way = way;
    this.#server = way();
    this.#version = this.#server.version();
    this.#owner = parts.ownerOf(this.#server);
    this.#list = parts.lists.known(this.#owner, "tools");
    // What lists tools looked at them.
    this.instructions = instructionsIn(this.#list as readonly ToolDefinition[]);
    const own = ownName(tool);
    this.#name = this.#server.toolName?.(own) ?? own;
    this.#support = objectOf(tool.execution).taskSupport;
  }

  holds(): boolean {
    const { pool, lists, outages, restarted, ownerOf } = this.#parts;
    const server = this.#server;
    if (restarted.has(server.name)) return false;
    try {
      const isSame = this.#way() === server && server.version() === this.#version;
      const connection = isSame ? pool.at(server.name, this.#version) : undefined;
      return connection !== undefined && ownerOf(server) === this.#owner &&
        isListed(connection, { ...server, owner: this.#owner, lists }) &&
        lists.isCurrent(this.#owner, this.#list, connection.tells ? Infinity : FRESH_MS) &&
        outages.of(`${server.name} ${this.#version}`) === undefined;
    } catch {
      return false; // a value is missing, which the usual way tells
    }
  }

  call(args: JsonObject, back: Back): Cancel {
    const { pool, declared } = this.#parts;
    const { name } = this.#server;
    const used = declared.use(name);
    const held = pool.hold(name, this.#version);
    if (held === undefined) throw new Error(`${quoted(name)} does not run`);
    const { living } = held;
    const to = { back, isModern: living.isModern };
    const over = () => {
      held[Symbol.dispose]();
      used[Symbol.dispose]();
    };
    const answered = (result: unknown) => {
      over();
      this.#answered(() => result, to);
    };
    const failed = (error: unknown) => {
      over();
      // A client that can open a page has the person sign in, and the call goes on.
      const wantsPage = isUnsigned(error) || urlElicitationsOf(error).length > 0;
      const isOpened = wantsPage && back.ways().onOpen !== undefined;
      if (error instanceof ErrorResponse && !isOpened) {
        return this.#answered(() => toolError(name, error), to);
      }
      // A program got what was written to it, however its connection ended.
      const isUnseen = this.#server.isRemote === true && isUnsent(error);
      if (isUnseen || isOpened) return back.unsent(error);
      back.failed(afterSent(error));
    };
    const params = { name: this.#name, arguments: args };
    const isOne = !living.isModern && !this.#server.isRemote && this.#support !== "required";
    if (!isOne) {
      const call = back.ways();
      callTool(living, params, { call, support: this.#support }).then(answered, failed);
      return () => {}; // the signal of the call is aborted
    }
    const { older } = living;
    const options = () => back.ways();
    try {
      const id = older.begin(METHOD, params, { answered, failed, options, hears: true });
      return (reason) => older.cancel(id, reason);
    } catch (error) {
      over();
      throw error;
    }
  }

  #answered(
    answer: () => unknown,
    { back, isModern }: { readonly back: Back; readonly isModern: boolean },
  ): void {
    let result: ToolResult;
    try {
      result = resultOf(answer(), {
        name: this.#server.name,
        method: METHOD,
        isModern,
        able: () => back.ways().able,
      });
    } catch (error) {
      return back.failed(error);
    }
    back.answered({ kind: "result", result });
  }
}

/** Returns whether a server did nothing because the person has to sign in first. */
function isUnsigned(error: unknown): boolean {
  return error instanceof PmlError && error.code === "LOGIN_REQUIRED";
}

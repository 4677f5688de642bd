/**
 * A tool of a program that runs and has listed it: its calls are sent at once.
 *
 * @module
 */

import type { ToolResult } from "../core/call.ts";
import { type JsonObject, objectOf, quoted } from "../core/json.ts";
import type { ListItem } from "../core/lists.ts";
import type { Back, Cancel, QuickTool } from "../core/quick_tool.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Pool } from "../io/pool.ts";
import { ErrorResponse } from "./_peer.ts";
import { resultOf, toolError } from "./_answers.ts";
import type { DeclaredCapabilities } from "./_declared.ts";
import { ownName } from "./_readable.ts";
import type { ListOwner, ServerLists } from "./_server_lists.ts";
import type { Connection } from "./connection.ts";
import type { UpstreamServer } from "./upstreams.ts";

const METHOD = "tools/call";

/** What a quick tool stands in. */
export interface QuickParts {
  readonly pool: Pool<Connection>;
  readonly lists: ServerLists;
  readonly declared: DeclaredCapabilities;
  /** Returns the present owner of the lists of a server. */
  readonly ownerOf: (server: UpstreamServer) => ListOwner;
  /** Returns how the server is reached with the present values of variables. Throws if it cannot. */
  readonly way: () => UpstreamServer;
}

/** A tool whose server is there. */
export class QuickServerTool implements QuickTool {
  readonly #parts: QuickParts;
  readonly #server: UpstreamServer;
  readonly #version: string;
  readonly #owner: ListOwner;
  readonly #list: readonly ListItem[];
  readonly #name: string;

  private constructor(parts: QuickParts, tool: ListItem) {
    this.#parts = parts;
    this.#server = parts.way();
    this.#version = this.#server.version();
    this.#owner = parts.ownerOf(this.#server);
    this.#list = parts.lists.known(this.#owner, "tools");
    const own = ownName(tool);
    this.#name = this.#server.toolName?.(own) ?? own;
  }

  /** Returns a tool that a server has listed; undefined if its calls need more than one request. */
  static of(
    parts: QuickParts,
    { listed, definition }: {
      readonly listed: ListItem;
      readonly definition: ToolDefinition;
    },
  ): QuickServerTool | undefined {
    // While the call ran that passed with this definition, the server may have listed another one.
    const isSame = JSON.stringify(listed) === JSON.stringify(definition);
    const isTask = objectOf(listed.execution).taskSupport === "required";
    const isAtOnce = isSame && !isTask && !parts.way().isRemote;
    return isAtOnce ? new QuickServerTool(parts, listed) : undefined;
  }

  holds(): boolean {
    const { pool, lists, declared, ownerOf, way } = this.#parts;
    const server = this.#server;
    try {
      return way() === server && server.version() === this.#version &&
        ownerOf(server) === this.#owner && lists.isCurrent(this.#owner, this.#list) &&
        declared.isCurrent(server.name) && pool.at(server.name, this.#version)?.isModern === false;
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
    const { older } = held.living;
    const over = () => {
      held[Symbol.dispose]();
      used[Symbol.dispose]();
    };
    const pending = {
      answered: (result: unknown) => {
        over();
        this.#answered(() => result, back);
      },
      failed: (error: unknown) => {
        over();
        if (!(error instanceof ErrorResponse)) return back.failed(error);
        this.#answered(() => toolError(name, error), back);
      },
      options: () => back.ways(),
      hears: true,
    };
    try {
      const id = older.begin(METHOD, { name: this.#name, arguments: args }, pending);
      return (reason) => older.cancel(id, reason);
    } catch (error) {
      over();
      throw error;
    }
  }

  #answered(answer: () => unknown, back: Back): void {
    let result: ToolResult;
    try {
      result = resultOf(answer(), { name: this.#server.name, method: METHOD });
    } catch (error) {
      return back.failed(error);
    }
    back.answered({ kind: "result", result });
  }
}

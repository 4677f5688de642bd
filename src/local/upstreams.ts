/**
 * The stdio servers that a person defined: started by the first call, shared, ended when idle.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../core/call.ts";
import { textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, quoted } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { Confinement } from "./_confined.ts";
import { Launch } from "./_launch.ts";
import type { Grants } from "./grants.ts";
import type { Trial } from "./learn.ts";
import { Pool, type PoolLimits } from "./pool.ts";
import type { Starts } from "./starts.ts";
import { Answered, StartTimer, Upstream, type UpstreamOptions } from "./upstream.ts";

/** A server as it is started; values are filled in. */
export interface StdioServer {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether it runs under Deno with permissions. */
  readonly confine: boolean;
  /** The only tools of it that count, where they are named. */
  readonly tools: readonly string[] | undefined;
  /** Where it is tried out: confined, with these grants and no others. */
  readonly trial?: Trial | undefined;
}

/** What starting servers needs from outside; functions are asked at each call. */
export interface UpstreamsOptions {
  /** Gives a server with its values filled in; throws what is missing. */
  readonly server: (name: string) => StdioServer;
  readonly workspace: () => string;
  readonly grants: (server: string) => Grants | undefined;
  readonly protection: Confinement["protection"];
  /** What every server finds in its environment, PATH among it. */
  readonly environment: Readonly<Record<string, string>>;
  /** What installers find there beside that: how the registry of the person is reached. */
  readonly installEnvironment: Readonly<Record<string, string>>;
  /** The PML home, where packages are installed. */
  readonly home: string;
  readonly limits: () => UpstreamOptions["limits"] & PoolLimits;
  readonly groups: UpstreamOptions["groups"] & { readonly mark: string };
  readonly onLog: (server: string, level: "debug" | "info" | "warn", text: string) => void;
  readonly onToolsChanged: (server: string) => void;
  /** Tells the calls that wait what is installed for them. */
  readonly starts: Starts;
}

/** The stdio servers of this PML. */
export class Upstreams implements AsyncDisposable {
  readonly #options: UpstreamsOptions;
  readonly #pool: Pool<Upstream>;
  readonly #launch: Launch;
  readonly #closing = new AbortController();
  readonly #tools = new Map<string, readonly ToolDefinition[]>();

  /** Takes the definitions; nothing is started before the first request. */
  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.#pool = new Pool(() => options.limits());
    this.#launch = new Launch(options, this.#closing.signal);
  }

  /** Gives the tools of a server: the same array as long as it says nothing of a change. */
  async toolsOf(name: string): Promise<readonly ToolDefinition[]> {
    const server = this.#options.server(name);
    const key = keyOf(server);
    const known = this.#tools.get(key);
    if (known !== undefined) return known;
    const all = await this.#use(server, async (upstream) => {
      using late = new StartTimer(name, this.#options.limits().startMs, this.#closing.signal);
      return await upstream.tools(late.signal);
    });
    const tools = all.filter((tool) => server.tools?.includes(tool.name) ?? true);
    this.#tools.set(key, tools);
    return tools;
  }

  /** Runs a call that passed the gates. */
  async call(call: Call): Promise<Outcome> {
    const { server: name, tool } = splitToolId(call.id);
    const { signal, onProgress, arguments: args } = call;
    const server = this.#options.server(name);
    const params = { name: tool, arguments: args };
    const use = async (upstream: Upstream) => {
      try {
        return await upstream.request("tools/call", params, { signal, onProgress });
      } catch (error) {
        if (!(error instanceof Answered)) throw error;
        const text = `${quoted(name)} answered with the error ${error.code}: ${error.message}`;
        return { ...textResult(text), isError: true } as unknown as JsonObject; // plain JSON
      }
    };
    const work = () => this.#use(server, use);
    const result = await this.#options.starts.during(name, { onProgress, work });
    return { kind: "result", result: resultOf(result, name) };
  }

  /** Ends every server. */
  async [Symbol.asyncDispose](): Promise<void> {
    // A server that does not answer yet is not waited for.
    this.#closing.abort(new PmlError("CANCELLED", "Cannot start the server: PML is ending"));
    await this.#pool[Symbol.asyncDispose]();
  }

  async #use<T>(server: StdioServer, use: (upstream: Upstream) => Promise<T>): Promise<T> {
    const key = keyOf(server);
    return await this.#pool.use(key, { start: () => this.#start(server), use });
  }

  async #start(server: StdioServer): Promise<Upstream> {
    const { groups, limits, onLog, onToolsChanged, workspace } = this.#options;
    const { name } = server;
    return await Upstream.start({
      name,
      program: await this.#launch.programOf(server),
      workspace: workspace(),
      limits: limits(),
      groups,
      closing: this.#closing.signal,
      onLog: (level, text) => onLog(name, level, text),
      onToolsChanged: () => {
        this.#tools.delete(keyOf(server));
        onToolsChanged(name);
      },
    });
  }
}

/** Takes what a server may say; with any other field it could pass for a question of PML. */
function resultOf(result: unknown, name: string): ToolResult {
  if (isObject(result) && Array.isArray(result.content ?? [])) {
    const { resultType: _, inputRequests: _i, requestState: _s, content = [], ...rest } = result;
    return { ...rest, content: content as ToolResult["content"] }; // looked at just now
  }
  throw new PmlError(
    "UPSTREAM_PROTOCOL",
    `Cannot use what ${quoted(name)} answered: it is no result`,
    {
      hint: "It does not speak MCP as PML knows it",
    },
  );
}

function keyOf(server: StdioServer): string {
  return JSON.stringify(server);
}

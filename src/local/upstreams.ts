/**
 * The stdio servers that a person defined: started by the first call, shared, ended when idle.
 *
 * @module
 */

import { delimiter, join, resolve } from "node:path";
import type { Call, Outcome, ToolResult } from "../core/call.ts";
import { textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { Program } from "../sandbox/process.ts";
import { findProgram, searchPath } from "../sandbox/search_path.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { confinedArgs, type Confinement } from "./_confined.ts";
import type { Grants } from "./grants.ts";
import { Installs, packageCommand } from "./installs.ts";
import { Pool, type PoolLimits } from "./pool.ts";
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
}

/** What starting servers needs from outside; functions are asked at each call. */
export interface UpstreamsOptions {
  /** Gives a server with its values filled in, the same one each time; throws what is missing. */
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
}

/** What installs before it runs: never in the workspace, which could say what is installed. */
const INSTALLERS = ["npx", "bunx", "uvx"];

/** The stdio servers of this PML. */
export class Upstreams implements AsyncDisposable {
  readonly #options: UpstreamsOptions;
  readonly #pool: Pool<Upstream>;
  readonly #installs: Installs;
  readonly #closing = new AbortController();
  readonly #tools = new Map<string, readonly ToolDefinition[]>();
  readonly #keyOf = memoized((server: StdioServer) => JSON.stringify(server));

  /** Takes the definitions; nothing is started before the first request. */
  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.#pool = new Pool(() => options.limits());
    this.#installs = new Installs({
      home: options.home,
      environment: () => ({
        ...options.environment,
        ...options.installEnvironment,
        PML_RUN: `${options.groups.mark}.`,
      }),
      groups: options.groups,
      find: (program) => this.#found(program, { name: program, cwd: "/" }),
      closing: this.#closing.signal,
      onLog: (text) => options.onLog("npm", "info", text),
    });
  }

  /** Gives the tools of a server: the same array as long as it says nothing of a change. */
  async toolsOf(name: string): Promise<readonly ToolDefinition[]> {
    const server = this.#options.server(name);
    const key = this.#keyOf(server);
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
    const result = await this.#use(server, async (upstream) => {
      try {
        return await upstream.request("tools/call", params, { signal, onProgress });
      } catch (error) {
        if (!(error instanceof Answered)) throw error;
        const text = `${quoted(name)} answered with the error ${error.code}: ${error.message}`;
        return { ...textResult(text), isError: true } as unknown as JsonObject; // plain JSON
      }
    });
    return { kind: "result", result: resultOf(result, name) };
  }

  /** Ends every server. */
  async [Symbol.asyncDispose](): Promise<void> {
    // A server that does not answer yet is not waited for.
    this.#closing.abort(new PmlError("CANCELLED", "Cannot start the server: PML is ending"));
    await this.#pool[Symbol.asyncDispose]();
  }

  async #use<T>(server: StdioServer, use: (upstream: Upstream) => Promise<T>): Promise<T> {
    const key = this.#keyOf(server);
    return await this.#pool.use(key, { start: () => this.#start(server), use });
  }

  async #start(server: StdioServer): Promise<Upstream> {
    const { groups, limits, onLog, onToolsChanged, workspace } = this.#options;
    const { name } = server;
    return await Upstream.start({
      name,
      program: await this.#programOf(server),
      workspace: workspace(),
      limits: limits(),
      groups,
      closing: this.#closing.signal,
      onLog: (level, text) => onLog(name, level, text),
      onToolsChanged: () => {
        this.#tools.delete(this.#keyOf(server));
        onToolsChanged(name);
      },
    });
  }

  async #programOf(server: StdioServer): Promise<Program> {
    const { name, command, args, env, cwd, confine } = server;
    const { environment, groups } = this.#options;
    const path = this.#path().join(delimiter);
    const own = { ...environment, PATH: path, PML_RUN: `${groups.mark}.`, ...env };
    if (!INSTALLERS.includes(command)) {
      if (confine) throw unconfinable(name, command);
      return { file: this.#found(command, { name, cwd }), args, cwd, env: own };
    }
    const wanted = command.startsWith("uv") ? undefined : packageCommand(args);
    if (wanted === undefined) {
      const message = `Cannot start ${quoted(name)}: ${quoted(command)} names no package of npm`;
      throw new PmlError("UPSTREAM_DOWN", message, {
        hint: "Write `npx -y NAME@VERSION`, or install it and give the path of its program",
      });
    }
    const { folder, file } = await this.#installs.fileOf(wanted);
    if (confine) {
      const { workspace, grants, protection, home } = this.#options;
      const where = { name, folder, workspace: workspace(), grants: grants(name), protection };
      const given = [...confinedArgs(where), file, ...wanted.args];
      const cache = { DENO_DIR: join(home, "servers", "deno"), DENO_NO_UPDATE_CHECK: "1" };
      return { file: Deno.execPath(), args: given, cwd, env: { ...own, ...cache } };
    }
    // What runs it was asked for by its name, too: npm's packages are written for node.
    const node = this.#found(command === "bunx" ? "bun" : "node", { name, cwd });
    return { file: node, args: [file, ...wanted.args], cwd, env: own };
  }

  #found(command: string, { name, cwd }: { readonly name: string; readonly cwd: string }): string {
    // A path is the person's own word, which was shown.
    if (/[\\/]/.test(command)) return resolve(cwd, command);
    const where = { path: this.#path(), workspace: this.#options.workspace() };
    const file = findProgram(command, where);
    if (file !== undefined) return file;
    const why = `command ${quoted(command, 300)} is not on PATH`;
    throw new PmlError("UPSTREAM_DOWN", `Cannot start ${quoted(name)}: ${why}`, {
      hint: "Install it, or give its absolute path in .pml.json",
    });
  }

  #path(): readonly string[] {
    const { environment, workspace } = this.#options;
    return searchPath(environment.PATH, workspace());
  }
}

function unconfinable(name: string, command: string): PmlError {
  const message = `Cannot confine ${quoted(name)}: ${quoted(command, 300)} is no npm package`;
  const hint = "Start it with npx, or take `confine` out: then it runs with your rights";
  return new PmlError("UPSTREAM_DOWN", message, { hint });
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

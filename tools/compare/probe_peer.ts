/**
 * A client of the probe server, connected directly or through PML.
 *
 * @module
 */

import { pathToFileURL } from "node:url";
import { makeAttackWorkspace } from "../../tests/attacks/stage.ts";
import { type Era, type Json, type Message, paramsFor } from "../../tests/kit/json_rpc.ts";
import { denoCommand } from "../../tests/kit/pml_command.ts";
import { RawStdio } from "../../tests/kit/raw_stdio.ts";
import type { Workspace } from "../../tests/kit/workspace.ts";

/** The ways to connect to the server. `serve` is `pml serve` with `full_proxy`. */
export const WAYS = ["direct", "full_proxy", "meta_only", "serve"] as const;

/** One way to connect. */
export type Way = typeof WAYS[number];

/** Any JSON object that a probe sends. */
export type Values = Readonly<Record<string, unknown>>;

/** The capabilities of the client. */
export const CAPABILITIES = {
  ...{ roots: { listChanged: true }, sampling: { tools: {} } },
  elicitation: { form: {}, url: {} },
  experimental: { "x.test/of-client": { a: 1 } },
  extensions: {
    "x.test/notes": { b: 2 },
    "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] },
    "io.modelcontextprotocol/skills": {},
  },
};
const SERVER = "p";
/** URI schemes in which PML inserts the server as the first segment. */
const SERVER_SCHEMES = ["skill://", "ui://"] as const;
const PREFIX = `pml://${SERVER}/`;
/** How long a probe waits for a message, in milliseconds. */
const WAIT_MS = 4_000;
const REQUEST_MS = 15_000;
const PAUSE_MS = 20;
/** Members of results that only 2026-07-28 has, and that differ between processes. */
const REVISION_MEMBERS = ["resultType", "ttlMs", "cacheScope"];

/** One connection to the server. */
export class ProbePeer implements AsyncDisposable {
  readonly way: Way;
  readonly era: Era;
  /** The answer to `initialize` or `server/discover`. */
  greeting: Json = {};
  /** The answers of the client, by method. */
  readonly answers: Record<string, (params: Values) => unknown> = {};
  readonly #raw: RawStdio;
  readonly #workspace: Workspace;
  readonly #requests: { readonly method: string; readonly params: Values }[] = [];

  private constructor(way: Way, era: Era, workspace: Workspace) {
    this.way = way;
    this.era = era;
    this.#workspace = workspace;
    const command = way === "direct" ? serverCommand(era) : undefined;
    this.#raw = new RawStdio(workspace, {
      ...{ era, door: way === "serve" ? "http" : "stdio", capabilities: CAPABILITIES },
      ...command && { command },
      answer: (method, params) => this.#answer(method, params),
    });
  }

  /** Connects in one way, with the same revision on both sides. */
  static async open(way: Way, era: Era): Promise<ProbePeer> {
    const [command, ...args] = serverCommand(era);
    const workspace = await makeAttackWorkspace({
      limits: { first_list_ms: 60_000 },
      pml: {
        version: 1,
        gateway: { tools_exposure: way === "meta_only" ? "meta_only" : "full_proxy" },
        permissions: { allow: [`${SERVER}:*`] },
        mcpServers: { [SERVER]: { command, args } },
      },
    });
    // PML declares the capabilities of a server only from its second start on.
    if (way !== "direct") await (await ProbePeer.#openConnection(way, era, workspace)).#raw.close();
    return await ProbePeer.#openConnection(way, era, workspace);
  }

  static async #openConnection(way: Way, era: Era, workspace: Workspace): Promise<ProbePeer> {
    const peer = new ProbePeer(way, era, workspace);
    const { result = {} } = await peer.#raw.open();
    peer.greeting = result;
    // Starts the server, so that PML knows its lists. With `meta_only`, only a call starts it.
    await peer.list("tools/list", "tools");
    await peer.call("seen");
    return peer;
  }

  /** The requests of the server so far. */
  get requests(): readonly { readonly method: string; readonly params: Values }[] {
    return this.#requests;
  }

  /** Returns the name that the client uses for a tool or prompt of the server. */
  clientName(name: string): string {
    return this.way === "direct" ? name : `${SERVER}__${name}`;
  }

  /** Returns the URI that the client uses for a resource of the server. */
  uri(uri: string): string {
    if (this.way === "direct") return uri;
    const scheme = SERVER_SCHEMES.find((prefix) => uri.startsWith(prefix));
    return scheme === undefined ? PREFIX + uri : `${scheme}${SERVER}/${uri.slice(scheme.length)}`;
  }

  /** Sends a request. Returns its normalized result or error. */
  async request(method: string, params: Values): Promise<Json> {
    const { result, error } = await this.#raw.request(method, params, { ms: REQUEST_MS });
    return this.normalize(error === undefined ? result : { error });
  }

  /** Calls a tool; with `meta_only` through the meta-tool `call`. */
  async call(tool: string, args: Values = {}, more: Values = {}): Promise<Json> {
    return await this.request("tools/call", { ...this.#callOf(tool, args), ...more });
  }

  /** Calls a tool that asks the client, and answers its questions. */
  async ask(kind: string): Promise<Json> {
    const { name, arguments: args } = this.#callOf("ask", { kind });
    const { result, error } = await this.#raw.callTool(name, args, { ms: REQUEST_MS });
    return this.normalize(error === undefined ? result : { error });
  }

  /** Begins a call, and returns its id. */
  beginCall(tool: string): number | string {
    return this.#raw.begin("tools/call", this.#callOf(tool, {})).id;
  }

  /** Begins a request. */
  beginRequest(method: string, params: Values): void {
    this.#raw.begin(method, params);
  }

  /** Sends a notification. */
  async notify(method: string, params: Values): Promise<void> {
    await this.#raw.notify(method, params);
  }

  /** Returns all items of a list. */
  async list(method: string, key: string): Promise<readonly Json[]> {
    const items: Json[] = [];
    let cursor: unknown;
    do {
      const params = cursor === undefined ? {} : { cursor };
      const { result } = await this.#raw.request(method, params, { ms: 120_000 });
      items.push(...this.normalize(result?.[key] ?? []) as unknown as readonly Json[]);
      cursor = result?.nextCursor;
    } while (cursor !== undefined);
    return items;
  }

  /** The number of messages so far. */
  get count(): number {
    return this.#raw.messages.length;
  }

  /** Waits for a notification after the first `since` messages. Returns its params, or null. */
  async waitForNotification(
    method: string,
    since: number,
    matches: (params: Json) => boolean = () => true,
  ): Promise<Json | null> {
    const isWanted = (message: Message) =>
      message.method === method && matches(this.normalize(message.params));
    const message = await this.until(() => this.#raw.messages.slice(since).find(isWanted));
    return message === undefined ? null : this.normalize(message.params);
  }

  /** Calls `find` until it returns a value. Returns undefined after `WAIT_MS`. */
  async until<T>(find: () => T | undefined | Promise<T | undefined>): Promise<T | undefined> {
    for (const end = performance.now() + WAIT_MS; performance.now() < end;) {
      const value = await find();
      if (value !== undefined) return value;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return undefined;
  }

  /** Returns a value without the names and members that PML or the connection adds. */
  normalize(value: unknown): Json {
    const text = JSON.stringify(value ?? null).replaceAll(PREFIX, "")
      .replaceAll(`${SERVER}__`, "").replaceAll(`Server ${SERVER} asks: `, "")
      .replaceAll(`"${SERVER}/deep"`, '"deep"').replaceAll(this.#workspace.path, "WORKSPACE");
    const plain = SERVER_SCHEMES.reduce(
      (json, scheme) => json.replaceAll(`${scheme}${SERVER}/`, scheme),
      text,
    );
    return JSON.parse(plain, (_, member) => withoutRevisionMembers(member));
  }

  /** The URL of the workspace. */
  get folder(): string {
    return pathToFileURL(this.#workspace.path).href;
  }

  /** Returns the params of a request with the members that the revision requires. */
  paramsOf(params: Values): Values {
    return paramsFor(this.era, params, CAPABILITIES) ?? {};
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#raw[Symbol.asyncDispose]();
    await this.#workspace[Symbol.asyncDispose]();
  }

  #callOf(tool: string, args: Values): { readonly name: string; readonly arguments: Values } {
    if (this.way !== "meta_only") return { name: this.clientName(tool), arguments: args };
    return { name: "call", arguments: { tool: `${SERVER}:${tool}`, arguments: args } };
  }

  #answer(method: string, params: Values): unknown {
    this.#requests.push({ method, params });
    const answer = this.answers[method];
    if (answer !== undefined) return answer(params);
    switch (method) {
      case "elicitation/create":
        return { action: "accept", ...params.mode !== "url" && { content: { name: "Ada" } } };
      case "roots/list":
        return { roots: [{ uri: this.folder, name: "w" }] };
      default:
        return {};
    }
  }
}

function serverCommand(era: Era): readonly [string, ...string[]] {
  const [program, ...args] = denoCommand("tools/compare/probe_server.ts");
  return [program, ...args, era];
}

/** Removes the members of the revision, and reserved members of `_meta`. */
function withoutRevisionMembers(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = Object.entries(value).filter(([name, member]) =>
    !REVISION_MEMBERS.includes(name) && !name.startsWith("io.modelcontextprotocol/") &&
    !(name === "_meta" && Object.keys(member ?? {}).length === 0)
  );
  return Object.fromEntries(members);
}

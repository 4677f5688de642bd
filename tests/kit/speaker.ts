/**
 * Communicates with PML in any revision of MCP, over stdio or HTTP, without an SDK in between.
 *
 * @module
 */

import { type Answerer, RawStdio } from "./raw_stdio.ts";
import { type Message, paramsFor } from "./json_rpc.ts";
import type { TestServer } from "./pml_serve.ts";
import type { Workspace } from "./workspace.ts";

/** All revisions. */
export const ALL_REVISIONS = [
  "2024-11-05",
  "2025-03-26",
  "2025-06-18",
  "2025-11-25",
  "2026-07-28",
] as const;

/** A revision. */
export type Revision = typeof ALL_REVISIONS[number];

/** A client of one revision. */
export interface Speaker extends AsyncDisposable {
  /** The result of `initialize`; undefined in the newest revision. */
  readonly opened: Message | undefined;
  /** Sends a request, and returns its answer. */
  request(method: string, params?: Record<string, unknown>): Promise<Message>;
}

/** The client of every test. */
export const HELLO = { capabilities: {}, clientInfo: { name: "speaker", version: "1" } };

/** Opens a client over stdio. */
export async function speakStdio(
  ws: Workspace,
  revision: Revision,
  { answer }: { readonly answer?: Answerer } = {},
): Promise<Speaker> {
  const isNewest = revision === "2026-07-28";
  const era = isNewest ? revision : "2025-11-25";
  const pml = new RawStdio(ws, { era, ...answer && { answer } });
  const opened = isNewest
    ? undefined
    : await pml.request("initialize", { protocolVersion: revision, ...HELLO });
  if (!isNewest) await pml.notify("notifications/initialized");
  return {
    opened,
    request: (method, params = {}) => pml.request(method, params),
    [Symbol.asyncDispose]: () => pml[Symbol.asyncDispose](),
  };
}

const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** Opens a client over HTTP. */
export async function speakHttp(served: TestServer, revision: Revision): Promise<Speaker> {
  let id = 0;
  let headers: Record<string, string> = {};
  const isNewest = revision === "2026-07-28";
  const post = (message: object, more: Record<string, string> = {}) =>
    served.fetch({
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      headers: { ...headers, ...more },
    });
  const request = async (method: string, params: Record<string, unknown> = {}) => {
    const name = params[NAMED[method] ?? ""];
    const more = isNewest
      ? {
        "mcp-protocol-version": revision,
        "mcp-method": method,
        ...typeof name === "string" && { "mcp-name": name },
      }
      : {};
    const said = isNewest ? paramsFor(revision, params, {}) : params;
    return await answerIn(await post({ id: ++id, method, params: said }, more), id);
  };
  let opened: Message | undefined;
  if (!isNewest) {
    const params = { protocolVersion: revision, ...HELLO };
    const response = await post({ id: ++id, method: "initialize", params });
    opened = await answerIn(response, id);
    headers = { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
    // The first revisions do not have the header.
    if (revision >= "2025-06-18") headers["mcp-protocol-version"] = revision;
    await (await post({ method: "notifications/initialized" })).body?.cancel();
  }
  return {
    opened,
    request,
    [Symbol.asyncDispose]: async () => {
      if (isNewest) return;
      await (await served.fetch({ method: "DELETE", headers })).body?.cancel();
    },
  };
}

/** Returns the answer to a request in a body: JSON, or a stream of events. */
export async function answerIn(response: Response, id: number): Promise<Message> {
  const text = await response.text();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const messages = isStream
    ? text.split("\n").filter((line) => line.startsWith("data: {")).map((line) => line.slice(6))
    : [text];
  const parsed = messages.map((one) => JSON.parse(one) as Message);
  const found = parsed.find((one) => one.id === id && !("method" in one));
  if (found === undefined) throw new Error(`No answer to ${id}: ${response.status} ${text}`);
  return found;
}

/**
 * A small server with the files of the page and recorded values, for tests of the page alone: texts
 * of attackers, accessibility and layout.
 *
 * @module
 */

import type { PageEvent, PageState } from "../../src/control/api.ts";
import { repoFile } from "../kit/pml_command.ts";
import {
  COSTS,
  PLAN,
  RULES,
  SEARCH,
  SERIES,
  SETTINGS,
  STATE,
  STORY,
  TOOL,
  TOOL_ROWS,
} from "./recorded_values.ts";

/** The policy that `pml page` sends, too. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const ASSETS: Readonly<Record<string, readonly [string, string]>> = {
  "/": ["src/page/page.html", "text/html; charset=utf-8"],
  "/page.js": ["src/page/page.min.js", "text/javascript; charset=utf-8"],
  "/page.css": ["src/page/page.min.css", "text/css; charset=utf-8"],
};
export const [SECRET, TOKEN] = ["secret-of-the-link", "token-of-the-tab"];

/** The value of an answer, or a function that makes it of the query or the body. */
type Answer = unknown | ((input: Readonly<Record<string, unknown>>) => unknown);

/** An action that the page sent. */
export interface SentAction {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** An error of the server, for an answer that is a function. */
export class Refusal {
  readonly status: number;
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };

  constructor(status: number, error: Refusal["error"]) {
    this.status = status;
    this.error = error;
  }
}

/** A running server. */
export class FakePage implements AsyncDisposable {
  /** The state that new streams get. */
  state: PageState;
  /** The actions that the page sent, without the sign-in. */
  readonly actions: SentAction[] = [];
  readonly answers = new Map<string, Answer>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #streams = new Set<ReadableStreamDefaultController<Uint8Array>>();
  #isSignedIn = true;
  #hasStreams = true;

  constructor(state: PageState = STATE) {
    this.state = state;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => this.#answer(request),
    );
    const done = { done: true, text: "Done" };
    const values: Record<string, Answer> = {
      "/api/calls": { calls: state.calls, more: false },
      ...{ "/api/call GET": STORY, "/api/context": COSTS, "/api/metrics": SERIES },
      ...{ "/api/rules": RULES, "/api/settings": SETTINGS, "/api/search": SEARCH },
      ...{ "/api/tools": TOOL_ROWS, "/api/tool": TOOL, "/api/answer": done },
      ...{ "/api/server": done, "/api/pause": done, "/api/resume": done, "/api/cancel": done },
      ...{ "/api/add/plan": PLAN, "/api/import/plan": PLAN, "/api/plan/apply": done },
      "/api/rules/remove": done,
      "/api/clients": [{ client: "cursor", title: "Cursor", servers: 3 }],
      "/api/call POST": { isError: false, ms: 81, content: [{ type: "text", text: "ok" }] },
    };
    for (const [path, answer] of Object.entries(values)) this.answers.set(path, answer);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The path of the link. */
  get link(): string {
    return `/#${SECRET}`;
  }

  /** Sends an event to all open tabs. */
  send(event: PageEvent): void {
    const line = new TextEncoder().encode(`${JSON.stringify(event)}\n`);
    for (const stream of this.#streams) stream.enqueue(line);
  }

  /** Changes the state, and sends it. */
  change(change: Partial<PageState>): void {
    this.state = { ...this.state, ...change };
    this.send({ type: "state", state: this.state });
  }

  /** Ends the streams, and answers no new one. */
  stopStreams(): void {
    this.#hasStreams = false;
    for (const stream of this.#streams) stream.close();
    this.#streams.clear();
  }

  /** Answers streams again. */
  startStreams(): void {
    this.#hasStreams = true;
  }

  /** Ends the sign-in. */
  signOut(): void {
    this.#isSignedIn = false;
    this.stopStreams();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stopStreams();
    await this.#server.shutdown();
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const asset = ASSETS[pathname];
    if (asset !== undefined) {
      const [file, type] = asset;
      const headers = { "content-type": type, "content-security-policy": POLICY };
      return new Response(await Deno.readTextFile(repoFile(file)), { headers });
    }
    const { status, value } = await this.#api(request, pathname);
    if (value instanceof ReadableStream) return new Response(value);
    return Response.json(value, { status });
  }

  async #api(
    request: Request,
    path: string,
  ): Promise<{ readonly status: number; readonly value: unknown }> {
    const text = request.method === "POST" ? await request.text() : "";
    const input = request.method === "POST"
      ? JSON.parse(text)
      : Object.fromEntries(new URL(request.url).searchParams);
    if (path === "/api/sign-in") {
      if (input.secret === SECRET) return { status: 200, value: { token: TOKEN } };
      const error = { code: "LINK_USED", message: "This link was used before" };
      return { status: 401, value: { error } };
    }
    if (!this.#isSignedIn || request.headers.get("x-pml-page") !== TOKEN) {
      const error = { code: "SIGN_IN_EXPIRED", message: "The sign-in has ended" };
      return { status: 401, value: { error } };
    }
    if (path === "/api/events") {
      return this.#hasStreams
        ? { status: 200, value: this.#events() }
        : { status: 503, value: { error: { code: "ENDED", message: "It is stopping" } } };
    }
    if (request.method === "POST") this.actions.push({ path, body: input, text });
    const answer = this.answers.get(`${path} ${request.method}`) ?? this.answers.get(path);
    const value = typeof answer === "function" ? await answer(input) : answer;
    if (value instanceof Refusal) return { status: value.status, value: { error: value.error } };
    return { status: 200, value };
  }

  #events(): ReadableStream<Uint8Array> {
    let own: ReadableStreamDefaultController<Uint8Array>;
    return new ReadableStream({
      start: (controller) => {
        own = controller;
        this.#streams.add(own);
        const first: PageEvent = { type: "state", state: this.state };
        own.enqueue(new TextEncoder().encode(`${JSON.stringify(first)}\n`));
      },
      cancel: () => void this.#streams.delete(own),
    });
  }
}

/**
 * Sends requests to the process `pml page`. Every request has the token of this sign-in in a header,
 * because a browser sends the cookie of 127.0.0.1 to all of its ports.
 *
 * @module
 */

import type { Problem } from "../src/control/api.ts";

const TOKEN = "pml-page-token";
const HEADER = "x-pml-page";

/** An error that the server answered with. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string | undefined;
  readonly hint: string | undefined;

  constructor(status: number, { code, message, hint }: Problem) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** The token of this tab, which it shares with other tabs of this origin. */
let token = localStorage.getItem(TOKEN);

/** Signs in with the secret of a link, and stores the token. */
export async function signIn(secret: string): Promise<void> {
  const answer = await request<{ token: string }>("/api/sign-in", { secret });
  token = answer.token;
  localStorage.setItem(TOKEN, token);
}

/** Returns whether this tab has a token. */
export function hasToken(): boolean {
  return token !== null;
}

/**
 * Removes the token of this tab. If another tab has stored a newer token, this tab gets that token.
 * Returns the token that the tab has then.
 */
export function dropToken(): "none" | "newer" {
  const stored = localStorage.getItem(TOKEN);
  if (stored === token) localStorage.removeItem(TOKEN);
  const isNewer = stored !== null && stored !== token;
  token = isNewer ? stored : null;
  return isNewer ? "newer" : "none";
}

/** Reads a value. Members that are undefined are left out of the query. */
export async function read<T>(
  path: string,
  query: Readonly<Record<string, string | number | undefined>> = {},
): Promise<T> {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]]
  );
  const search = new URLSearchParams(pairs).toString();
  return await request<T>(search === "" ? path : `${path}?${search}`);
}

/** Sends an action to the server, and returns its result. */
export function sendAction<T>(path: string, body: object): Promise<T> {
  return request<T>(path, body);
}

/**
 * Makes a call with arguments that are JSON text, so that numbers beyond 2^53 keep their digits.
 */
export function callTool<T>(
  { workspace, tool, text }: {
    readonly workspace: string;
    readonly tool: string;
    readonly text: string;
  },
): Promise<T> {
  const start = JSON.stringify({ workspace, tool }).slice(0, -1);
  return request<T>("/api/call", `${start},"arguments":${text}}`);
}

/** Opens the stream of events. Throws `ApiError` if the server refuses it. */
export async function openEvents(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
  const response = await fetch("/api/events", { headers: headers(), cache: "no-store", signal });
  if (!response.ok || response.body === null) throw await toApiError(response);
  return response.body;
}

async function request<T>(path: string, body?: object | string): Promise<T> {
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const response = await fetch(path, {
    method: text === undefined ? "GET" : "POST",
    headers: { ...headers(), ...text !== undefined && { "content-type": "application/json" } },
    cache: "no-store",
    ...text !== undefined && { body: text },
  });
  if (!response.ok) throw await toApiError(response);
  return await response.json();
}

function headers(): Record<string, string> {
  return token === null ? {} : { [HEADER]: token };
}

async function toApiError(response: Response): Promise<ApiError> {
  const body = await response.json().catch(() => undefined);
  const problem = body?.error ?? { message: `The server answered with status ${response.status}` };
  return new ApiError(response.status, problem);
}

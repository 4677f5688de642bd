/**
 * The messages of JSON-RPC and of both revisions of MCP, as the tests use them.
 *
 * @module
 */

import assert from "node:assert/strict";

/** The revisions of MCP in the tests: with a handshake, and without. */
export type Era = "2025-11-25" | "2026-07-28";

/** Both revisions, for tests of both. */
export const ERAS: readonly Era[] = ["2025-11-25", "2026-07-28"];

/** JSON that a test reads by name; a missing member is undefined at each step. */
export interface Json {
  readonly [key: string]: Json | undefined;
}

/** The members of a JSON-RPC message. */
export interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Json;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** The client's identity, in each revision. */
export const CLIENT_INFO = { name: "pml-test", version: "1.0.0" } as const;

/** Parses one line of output. Throws unless it contains exactly one JSON-RPC message. */
export function parseMessage(line: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    assert.fail(`stdout carries a line that is not JSON: ${JSON.stringify(line.slice(0, 500))}`);
  }
  const text = line.slice(0, 500);
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), text);
  const message = value as Message;
  assert.equal(message.jsonrpc, "2.0", `not JSON-RPC: ${text}`);
  const kinds = ["method", "result", "error"].filter((key) => key in message);
  assert.equal(kinds.length, 1, `neither one request nor one answer: ${text}`);
  if (!("method" in message)) assert.ok("id" in message, `an answer without an id: ${text}`);
  return message;
}

/** Adds the members that the revision requires to the params of a request. */
export function paramsFor(
  era: Era,
  params: Record<string, unknown> | undefined,
  capabilities: Record<string, unknown>,
): Record<string, unknown> | undefined {
  if (era === "2025-11-25") return params;
  const meta = params?._meta as Record<string, unknown> | undefined;
  return {
    ...params,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": era,
      "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
      "io.modelcontextprotocol/clientCapabilities": capabilities,
      ...meta,
    },
  };
}

/**
 * The words of JSON-RPC and of both eras of MCP, as the tests speak them on the wire.
 *
 * @module
 */

import assert from "node:assert/strict";

/** The revisions of MCP that the tests speak: with a handshake, and without. */
export type Era = "2025-11-25" | "2026-07-28";

/** Both eras, for tests that must hold in each. */
export const ERAS: readonly Era[] = ["2025-11-25", "2026-07-28"];

/** JSON that a test looks into by name; what is missing is undefined at each step. */
export interface Json {
  readonly [key: string]: Json | undefined;
}

/** What a JSON-RPC message may carry. */
export interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: number | string | null;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Json;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Who the client is, in each era. */
export const CLIENT_INFO = { name: "pml-test", version: "1.0.0" } as const;

/** Reads one line of output, or fails: it must hold exactly one JSON-RPC message. */
export function parseMessage(line: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    assert.fail(`stdout carries a line that is not JSON: ${JSON.stringify(line.slice(0, 500))}`);
  }
  const shown = line.slice(0, 500);
  assert.ok(typeof value === "object" && value !== null && !Array.isArray(value), shown);
  const message = value as Message;
  assert.equal(message.jsonrpc, "2.0", `not JSON-RPC: ${shown}`);
  const kinds = ["method", "result", "error"].filter((key) => key in message);
  assert.equal(kinds.length, 1, `neither one request nor one answer: ${shown}`);
  if (!("method" in message)) assert.ok("id" in message, `an answer without an id: ${shown}`);
  return message;
}

/** Adds to the params of a request what its era wants there. */
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

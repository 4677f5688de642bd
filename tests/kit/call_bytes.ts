/**
 * Writes a call of the newest revision as HTTP bytes, for tests that send a part of them, several
 * at once, or read nothing of the response.
 *
 * @module
 */

import { paramsFor } from "./json_rpc.ts";
import type { TestServer } from "./pml_serve.ts";

const NEWEST = "2026-07-28";

/** Returns the header and the body of a call. */
export function callBytes(
  { url, token }: Pick<TestServer, "url" | "token">,
  call: { readonly name: string; readonly arguments?: object; readonly _meta?: object },
  { id = 1, more = [] }: { readonly id?: number; readonly more?: readonly string[] } = {},
): Uint8Array {
  const params = paramsFor(NEWEST, { ...call }, {});
  const body = JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params });
  const lines = [
    "POST /mcp HTTP/1.1",
    `Host: ${new URL(url).host}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    `Mcp-Protocol-Version: ${NEWEST}`,
    "Mcp-Method: tools/call",
    `Mcp-Name: ${call.name}`,
    `Content-Length: ${new TextEncoder().encode(body).length}`,
    ...more,
  ];
  return new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

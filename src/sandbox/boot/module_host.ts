/**
 * Creates `host`, the second argument of a module's functions, in the module's own thread.
 *
 * @module
 */

import type { ExecOptions, ExecOutput, Host } from "../host.ts";
import { deniedFunction, type HostClient } from "./host_client.ts";

/** The parts of `host` that belong to one call. */
export interface CallOfHost {
  readonly signal: AbortSignal;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | null>>;
  readonly sqlite: Host["sqlite"];
  /** Sends a frame of this call. */
  readonly send: (type: "log" | "progress", value: unknown) => void;
  /** Sends a request of this call to PML. */
  readonly want: (name: string, args: unknown) => Promise<unknown>;
}

/** Returns the `host` of one call. */
export function moduleHost(client: HostClient, call: CallOfHost): Host {
  const { signal, workspace, env, sqlite, send, want } = call;
  return {
    signal,
    workspace,
    sqlite,
    log: (...values: readonly unknown[]) => {
      const level = values.length > 1 ? String(values[0]) : "info";
      send("log", { level, text: String(values.at(-1)) });
    },
    progress: (progress) => send("progress", progress),
    exec: async (program, args = [], options: ExecOptions = {}) => {
      const { onOutput, ...otherOptions } = options;
      const onSay = onOutput && ((output: unknown) => onOutput(output as ExecOutput));
      const sent = [program, [...args], otherOptions];
      // The host thread returns this type.
      return await client.request("exec", sent, { signal, onSay }) as never;
    },
    // PML returns this type.
    sample: async (request) => await want("sample", request) as never,
    fetch: async (url, init) => await fetchThroughHost(client, new Request(url, init), signal),
    env: (name) => {
      if (Object.hasOwn(env, name)) return env[name] ?? undefined;
      throw deniedFunction(
        `Cannot read the variable "${name}": this module has no env grant for it`,
      );
    },
  };
}

/** The parts of a response that the host thread sends. */
interface ResponseParts extends ResponseInit {
  readonly url: string;
  readonly redirected: boolean;
  readonly body: Uint8Array<ArrayBuffer>;
}

async function fetchThroughHost(
  client: HostClient,
  request: Request,
  signal: AbortSignal,
): Promise<Response> {
  const { url, method, redirect } = request;
  const body = request.body && new Uint8Array(await request.arrayBuffer());
  const sent = { url, method, redirect, headers: [...request.headers], ...(body && { body }) };
  const both = AbortSignal.any([signal, request.signal]);
  // The host thread returns this type.
  const parts = await client.request("fetch", [sent], { signal: both }) as ResponseParts;
  const hasNoBody = [101, 204, 205, 304].includes(parts.status ?? 0);
  const response = new Response(hasNoBody ? null : parts.body, parts);
  const { redirected } = parts;
  return Object.defineProperties(response, {
    url: { value: parts.url },
    redirected: { value: redirected },
  });
}

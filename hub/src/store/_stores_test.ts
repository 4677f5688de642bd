/**
 * The stores for which the same tests hold.
 *
 * @module
 */

import { startPostgres, type TestPostgres } from "../../../tests/kit/postgres.ts";
import { openEmbedded } from "./embedded.ts";
import { openPostgres } from "./postgres.ts";
import type { HubStore, OfferedVersion } from "./store.ts";

/** A store that a test opens anew as often as it wants. */
export interface Place extends AsyncDisposable {
  readonly open: () => Promise<HubStore>;
}

/** The implementations: the same tests hold for each. */
export const STORES: Readonly<Record<string, () => Promise<Place>>> = {
  embedded: async () => {
    const { path, ...rest } = await folder();
    return { ...rest, open: () => openEmbedded(path) };
  },
  postgres: async () => {
    const server = await running();
    const url = await server.database();
    return { open: () => openPostgres(url), [Symbol.asyncDispose]: () => Promise.resolve() };
  },
};

const kept: { server?: Promise<TestPostgres> } = {};

/** One server for all tests of a file, begun by the first that needs it. */
export function running(): Promise<TestPostgres> {
  return kept.server ??= startPostgres();
}

Deno.test.afterAll(async () => await (await kept.server)?.[Symbol.asyncDispose]());

/** Makes a folder for a test. */
export async function folder() {
  const path = await Deno.makeTempDir();
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** Returns a server that is offered. */
export function server(
  fqdn: string,
  version: string,
  more: Record<string, unknown> = {},
): OfferedVersion {
  const manifest = {
    ...{ fqdn, type: "stdio", version, description: `Does ${fqdn}` },
    install: { command: "npx", args: ["-y", `${fqdn}@${version}`] },
    tools: [{ name: "look_up", inputSchema: { type: "object" } }],
    ...{ env_required: ["A_KEY"], warnings: ["slow"], routing: "local" },
    ...more,
  };
  return { fqdn, version, manifest: JSON.parse(JSON.stringify(manifest)) };
}

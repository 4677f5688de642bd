/**
 * Finds the server for a request or a notification whose method PML does not know.
 *
 * @module
 */

import {
  isExtensionOf,
  isKnownExtension,
  SKILLS_EXTENSION,
} from "../protocol/extension_methods.ts";
import { type JsonObject, textOf } from "../core/json.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import type { Client } from "./_clients.ts";
import type { Offers } from "./_offers.ts";
import type { Servers } from "../servers/lists/servers.ts";

const NOT_DECLARED = "Method not found: no server here declared an extension that has it";

/** Finds the server that runs a task. */
export interface TaskPlaces {
  /** Returns the server of a task of a party, and its id there; undefined if there is no such task. */
  placeOf(
    own: string,
    client: Pick<Client, "party">,
  ): { readonly server: string; readonly id: string } | undefined;
}

/** The collaborators that know which server something belongs to. */
export interface Owners {
  readonly offers: Pick<Offers, "resource">;
  readonly servers: Pick<Servers, "extensions">;
  readonly tasks: TaskPlaces;
}

/** The server of a request, and its params with the names that the server has. */
export interface Owned {
  readonly server: string;
  readonly params: JsonObject;
}

/**
 * Returns the server of a request: the one that owns the URI or the task that the request names,
 * else the only one that declared the extension of the method, else the only one that declared any
 * extension which PML does not know. Rejects with -32601, which names the candidates.
 */
export async function serverOfRequest(
  { method, params, client }: {
    readonly method: string;
    readonly params: JsonObject;
    readonly client: Pick<Client, "party">;
  },
  { offers, servers, tasks }: Owners,
): Promise<Owned> {
  const task = tasks.placeOf(textOf(params.taskId), client);
  if (task !== undefined) return { server: task.server, params: { ...params, taskId: task.id } };
  const uri = textOf(params.uri);
  const place = uri === "" ? undefined : await offers.resource(uri).catch(() => undefined);
  if (place !== undefined) return { server: place.server, params: { ...params, uri: place.name } };
  const unknown = [...servers.extensions()]
    .map(([server, ids]) => ({ server, ids: ids.filter((id) => !isKnownExtension(id)) }))
    .filter(({ ids }) => ids.length > 0);
  const extensionServers = unknown.filter(({ ids }) => ids.some((id) => isExtensionOf(id, method)));
  const others = unknown.filter(({ ids }) => ids.some((id) => id !== SKILLS_EXTENSION));
  const candidates = extensionServers.length > 0 ? extensionServers : others;
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) return { server: only.server, params };
  throw notFound(candidates.map(({ server }) => server));
}

function notFound(candidates: readonly string[]): RpcError {
  if (candidates.length === 0) return new RpcError(ERROR.methodNotFound, NOT_DECLARED);
  const why = `these servers may have it: ${candidates.join(", ")}`;
  return new RpcError(ERROR.methodNotFound, `Method not found: ${why}`, { candidates });
}

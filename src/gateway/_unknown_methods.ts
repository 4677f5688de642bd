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
  /**
   * Returns the server of a task, and the task's id there; undefined if the client's owner has no
   * such task. `taskId` is PML's id.
   */
  placeOf(
    taskId: string,
    client: Pick<Client, "owner">,
  ): { readonly server: string; readonly id: string } | undefined;
}

/** The collaborators that find the server of a resource, an extension or a task. */
export interface TargetSources {
  readonly offers: Pick<Offers, "findResource">;
  readonly servers: Pick<Servers, "extensions">;
  readonly tasks: TaskPlaces;
}

/** The server of a request, and the params with the server's own names. */
export interface RequestTarget {
  readonly server: string;
  readonly params: JsonObject;
}

/**
 * Returns the server of a request: the server of the task or of the URI that the params name.
 * Otherwise the only server that declared the extension of the method. Otherwise the only server
 * that declared any extension that PML does not know. Rejects with the error -32601, whose data
 * lists the candidates.
 */
export async function findTarget(
  { method, params, client }: {
    readonly method: string;
    readonly params: JsonObject;
    readonly client: Pick<Client, "owner">;
  },
  { offers, servers, tasks }: TargetSources,
): Promise<RequestTarget> {
  const task = tasks.placeOf(textOf(params.taskId), client);
  if (task !== undefined) return { server: task.server, params: { ...params, taskId: task.id } };
  const uri = textOf(params.uri);
  const place = uri === "" ? undefined : await offers.findResource(uri).catch(() => undefined);
  if (place !== undefined) return { server: place.server, params: { ...params, uri: place.name } };
  const withUnknown = [...servers.extensions()]
    .map(([server, ids]) => ({ server, ids: ids.filter((id) => !isKnownExtension(id)) }))
    .filter(({ ids }) => ids.length > 0);
  const extensionServers = withUnknown.filter(({ ids }) =>
    ids.some((id) => isExtensionOf(id, method))
  );
  const withOther = withUnknown.filter(({ ids }) => ids.some((id) => id !== SKILLS_EXTENSION));
  const candidates = extensionServers.length > 0 ? extensionServers : withOther;
  const [only] = candidates;
  if (only !== undefined && candidates.length === 1) return { server: only.server, params };
  throw notFoundError(candidates.map(({ server }) => server));
}

function notFoundError(candidates: readonly string[]): RpcError {
  if (candidates.length === 0) return new RpcError(ERROR.methodNotFound, NOT_DECLARED);
  const why = `these servers may have it: ${candidates.join(", ")}`;
  return new RpcError(ERROR.methodNotFound, `Method not found: ${why}`, { candidates });
}

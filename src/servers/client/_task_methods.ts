/**
 * The methods of tasks, in both revisions that have them.
 *
 * @module
 */

import { type RequestOptions, withoutClient } from "../../protocol/rpc_peer.ts";
import { isObject, type JsonObject, objectOf, textOf } from "../../core/json.ts";

/** The options of a request whose answer no caller waits for. */
export const ASIDE: RequestOptions = { ...withoutClient(), lasts: true };

/** Returns whether a method is about a task. */
export function isOfTask(method: string | undefined): boolean {
  return textOf(method).startsWith("tasks/");
}

/** Returns whether a server of the revision before the newest can run tools as tasks. */
export function runsTasks({ tasks }: JsonObject): boolean {
  return isObject(objectOf(objectOf(objectOf(tasks).requests).tools).call);
}

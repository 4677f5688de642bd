/**
 * The methods of tasks, in both revisions that have them.
 *
 * @module
 */

import { type RequestOptions, withoutClient } from "../../protocol/rpc_peer.ts";
import { isObject, type JsonObject, objectOf, textOf } from "../../core/json.ts";

/** The options of requests for whose answer no caller waits. */
export const BACKGROUND_REQUEST: RequestOptions = { ...withoutClient(), isLongLived: true };

/** Returns whether a method is about a task. */
export function isTaskMethod(method: string | undefined): boolean {
  return textOf(method).startsWith("tasks/");
}

/** Returns whether a server of an older revision can run tools as tasks, by its capabilities. */
export function runsTasks({ tasks }: JsonObject): boolean {
  return isObject(objectOf(objectOf(objectOf(tasks).requests).tools).call);
}

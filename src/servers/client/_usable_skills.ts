/**
 * Leaves out the skills of a server that clients cannot use. For servers that cannot list the files
 * in a skill's directory, PML lists them.
 *
 * @module
 */

import { counted } from "../../core/amounts.ts";
import { type Json, type JsonObject, quoted, textOf } from "../../core/json.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import {
  childrenOf,
  DIRECTORY_READ,
  skillOf,
  skillProblem,
  SKILLS_MAX,
} from "../../protocol/skills.ts";
import type { ServerConnection } from "./connection.ts";
import type { ServerCall } from "./_server_call.ts";
import type { ServerLists } from "./_server_lists.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** The maximum number of unusable skills that a log line names. */
const NAMED_MAX = 5;

/**
 * Returns the items of a list that clients can use. Leaves out skills with a problem, and all
 * skills that have the same address as another skill, and logs which. Does not change other lists.
 */
export function usableItems(
  list: ListName,
  all: readonly ListItem[],
  { name, host }: { readonly name: string; readonly host: Pick<UpstreamsHost, "logServer"> },
): readonly ListItem[] {
  if (list !== "skills") return all;
  const counts = new Map<string, number>();
  for (const { uri } of all) counts.set(textOf(uri), (counts.get(textOf(uri)) ?? 0) + 1);
  const problemOf = (skill: ListItem) =>
    counts.get(textOf(skill.uri)) === 1
      ? skillProblem(skill as JsonObject) // parsed JSON
      : "it is listed twice";
  const problems = all.map(problemOf);
  const skills = all.filter((_, index) => problems[index] === undefined);
  const reasons = all.flatMap(({ uri }, index) => {
    const problem = problems[index];
    return problem === undefined ? [] : [`${quoted(textOf(uri), 200)}: ${problem}`];
  });
  const named = reasons.slice(0, NAMED_MAX).join("; ");
  const more = reasons.length > NAMED_MAX ? `; and ${reasons.length - NAMED_MAX} more` : "";
  const unused = reasons.length === 0
    ? []
    : [`${counted(reasons.length, "skill")} left out: ${named}${more}`];
  // guard: skills-max
  if (skills.length > SKILLS_MAX) {
    const many = `only ${SKILLS_MAX} of ${counted(skills.length, "skill")} are used`;
    host.logServer(name, "warn", [many, ...unused].join("; "));
    return skills.slice(0, SKILLS_MAX);
  }
  for (const text of unused) host.logServer(name, "warn", text);
  return skills;
}

/**
 * Sends a request other than a tool call. If the server cannot list the children of a skill's
 * directory, PML lists them itself, and rejects if the address is not a directory.
 */
export function passOn(
  { call, params, listKey }: Pick<ServerCall, "call" | "params" | "listKey">,
  connection: Pick<ServerConnection, "readsDirectories" | "request">,
  lists: Pick<ServerLists, "cached">,
): Promise<Json> {
  const { method = "", arguments: { uri } } = call;
  if (method !== DIRECTORY_READ || connection.readsDirectories) {
    return connection.request(method, params, call);
  }
  const skill = skillOf(lists.cached(listKey, "skills"), textOf(uri));
  const resources = skill && childrenOf(skill, textOf(uri));
  if (resources !== undefined) return Promise.resolve({ resources });
  const message = `${quoted(textOf(uri), 200)} is not a directory that the server can list`;
  return Promise.reject(new RpcError(ERROR.invalidParams, message));
}

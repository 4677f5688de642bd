/**
 * The results of servers about skills, for clients: valid, and with the addresses that clients use.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type JsonObject, listOf, objectOf, quoted, textOf } from "../core/json.ts";
import { isChildOf, renamedAll, renamedSkill, skillProblem } from "../protocol/skills.ts";
import type { Offers } from "./_offers.ts";
import type { ForwardedRequest } from "./_forwarded_requests.ts";

/** A request for a resource, with the address that its server has. */
type Asked = Pick<ForwardedRequest, "ruleName" | "server" | "params">;

/**
 * Returns the result of `skills/get`. Throws `UPSTREAM_PROTOCOL` if it is not the entry of the skill
 * that was requested.
 */
export function checkedSkill(result: JsonObject, { server, params }: Asked): JsonObject {
  const skill = objectOf(result.skill);
  const problem = skill.uri === params.uri ? skillProblem(skill) : "it is another skill";
  if (problem === undefined) return result;
  const what = `Cannot use the skill ${quoted(textOf(params.uri), 200)} of ${quoted(server)}`;
  throw new PmlError("UPSTREAM_PROTOCOL", `${what}: ${problem}`, {
    hint: "Report this to the author of the server",
  });
}

/** Returns the addresses of the files of a skill. */
export function addressesOf({ skill }: JsonObject): readonly string[] {
  const { uri, resources } = objectOf(skill);
  return [textOf(uri), ...listOf(resources).map((one) => textOf(objectOf(one).uri))];
}

/** Returns the result of a directory of skills without resources that are not in it. */
export function withinDirectory(result: JsonObject, { ruleName, params }: Asked): JsonObject {
  if (ruleName !== "@skills") return result;
  const directory = textOf(params.uri);
  const resources = listOf(result.resources).filter((one) =>
    isChildOf(directory, textOf(objectOf(one).uri))
  );
  return { ...result, resources };
}

/**
 * Returns a result about skills with addresses in the form that the client used: with the server, or
 * as the server has them.
 */
export function withAddresses(
  result: JsonObject,
  { place: { ruleName, server, params: own }, params, offers }: {
    readonly place: Asked;
    /** The params of the client. */
    readonly params: JsonObject;
    readonly offers: Pick<Offers, "uriOf">;
  },
): JsonObject {
  if (ruleName !== "@skills" || params.uri === own.uri) return result;
  const rename = (name: string) => offers.uriOf({ server, name });
  const { contents, resources, skill } = result;
  return {
    ...result,
    ...Array.isArray(contents) && { contents: renamedAll(contents, rename) },
    ...Array.isArray(resources) && { resources: renamedAll(resources, rename) },
    ...skill !== undefined && { skill: renamedSkill(objectOf(skill), rename) },
  };
}

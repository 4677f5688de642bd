/**
 * Checks the results of servers about skills, and replaces addresses by those that clients use.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type JsonObject, listOf, objectOf, quoted, textOf } from "../core/json.ts";
import { isChildOf, renameSkill, renameSkills, skillProblem } from "../protocol/skills.ts";
import type { Offers } from "./_offers.ts";
import type { ForwardedRequest } from "./_forwarded_requests.ts";

/** A request for a resource. Its params contain the server's own address. */
type SkillRequest = Pick<ForwardedRequest, "ruleName" | "server" | "params">;

/**
 * Returns the result of `skills/get` unchanged. Throws `UPSTREAM_PROTOCOL` if it is not the valid
 * entry of the requested skill.
 */
export function checkSkill(result: JsonObject, { server, params }: SkillRequest): JsonObject {
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
  return [textOf(uri), ...listOf(resources).map((resource) => textOf(objectOf(resource).uri))];
}

/** Returns the result of reading a directory, without resources that are not in the directory. */
export function limitToDirectory(
  result: JsonObject,
  { ruleName, params }: SkillRequest,
): JsonObject {
  if (ruleName !== "@skills") return result;
  const directory = textOf(params.uri);
  const resources = listOf(result.resources).filter((resource) =>
    isChildOf(directory, textOf(objectOf(resource).uri))
  );
  return { ...result, resources };
}

/**
 * Returns a result about skills with addresses in the form that the client used: the form of PML's
 * lists, or the server's own.
 */
export function withAddresses(
  result: JsonObject,
  { place: { ruleName, server, params: serverParams }, params, offers }: {
    readonly place: SkillRequest;
    /** The params of the client. */
    readonly params: JsonObject;
    readonly offers: Pick<Offers, "uriOf">;
  },
): JsonObject {
  if (ruleName !== "@skills" || params.uri === serverParams.uri) return result;
  const rename = (name: string) => offers.uriOf({ server, name });
  const { contents, resources, skill } = result;
  return {
    ...result,
    ...Array.isArray(contents) && { contents: renameSkills(contents, rename) },
    ...Array.isArray(resources) && { resources: renameSkills(resources, rename) },
    ...skill !== undefined && { skill: renameSkill(objectOf(skill), rename) },
  };
}

/**
 * Decides about requests for resources, prompts and skills, which the rules know as
 * `SERVER:@resources`, `SERVER:@prompts` and `SERVER:@skills`.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { splitToolId } from "../core/tool_id.ts";

const UNLISTED: Verdict = {
  kind: "ask",
  rule: "an address that its server did not list",
  source: "defaults",
};
const MEMBERS: Verdict = {
  kind: "ask",
  rule: "members of the request that no rule allows",
  source: "defaults",
};
/** The names of prompts and skills in questions about all of them. */
const NAMES: Readonly<Record<string, string>> = { "@prompts": "prompts", "@skills": "skills" };
/** The params that MCP defines for these requests. */
const PARAMS = ["uri", "name", "arguments", "ref", "argument", "context", "cursor"];
/** The least restrictive decision first. */
const LEAST_FIRST = ["allow", "ask", "deny"];

/** Returns whether a call is a request for a resource or a prompt of a server. */
export function isOfOffer({ id, method }: Pick<Call, "id" | "method">): boolean {
  return method !== undefined &&
    ["@resources", "@prompts", "@skills"].includes(splitToolId(id).tool);
}

/**
 * Returns whether a question about a call is about all resources or prompts of its server. The
 * question about an address that the server did not offer is about that address alone.
 */
export function isAboutAll(call: Pick<Call, "id" | "method" | "isOffered">): boolean {
  return isOfOffer(call) && !isUnlisted(call);
}

/** Returns lines for the question about a request for a resource or a prompt. */
export function offerFacts(call: Pick<Call, "id" | "method" | "isOffered">): readonly string[] {
  if (!isOfOffer(call)) return [];
  if (isUnlisted(call)) {
    return ["No list that PML has of this server names the address: PML asks each time"];
  }
  const what = NAMES[splitToolId(call.id).tool] ?? "listed resources";
  return [`Yes covers all ${what} of this server that are requested while this question is open`];
}

/**
 * Returns the decision about a request, given those of the rules about `SERVER:@resources` and
 * about the pinned tools that name the address as their page. An address that the server did not
 * offer asks, whatever rule allows the others. Members that no list knows ask unless a rule allows
 * the request.
 */
export function offerVerdict(
  call: Pick<Call, "id" | "method" | "isOffered" | "members"> & Partial<Pick<Call, "arguments">>,
  { ruled, tools }: { readonly ruled: Verdict; readonly tools: readonly Verdict[] },
): Verdict {
  if (ruled.kind === "deny") return ruled;
  const [page] = tools.toSorted((one, other) =>
    LEAST_FIRST.indexOf(one.kind) - LEAST_FIRST.indexOf(other.kind)
  );
  const isRuled = ruled.kind === "allow" && ruled.source !== "defaults";
  if (page !== undefined) return page.kind === "ask" && isRuled ? ruled : page;
  if (ruled.kind !== "allow") return ruled;
  if (isUnlisted(call)) return UNLISTED;
  return !isRuled && hasMembers(call) ? MEMBERS : ruled;
}

function hasMembers(
  { method, members, arguments: params = {} }: Partial<
    Pick<Call, "method" | "members" | "arguments">
  >,
): boolean {
  return members !== undefined ||
    method !== undefined && Object.keys(params).some((name) => !PARAMS.includes(name));
}

function isUnlisted({ id, isOffered }: Pick<Call, "id" | "isOffered">): boolean {
  return isOffered !== true && ["@resources", "@skills"].includes(splitToolId(id).tool);
}

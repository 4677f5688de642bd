/**
 * Decides about requests for resources, prompts and skills. Rules name them `SERVER:@resources`,
 * `SERVER:@prompts` and `SERVER:@skills`.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { splitToolId } from "../core/tool_id.ts";

/** The decision about an address that its server did not list. */
const UNLISTED_VERDICT: Verdict = {
  kind: "ask",
  rule: "an address that its server did not list",
  source: "defaults",
};
/** The decision about a request with members that MCP does not define. */
const MEMBERS_VERDICT: Verdict = {
  kind: "ask",
  rule: "members of the request that no rule allows",
  source: "defaults",
};
/** The names of prompts and skills in questions about all of them. */
const OFFER_NAMES: Readonly<Record<string, string>> = {
  "@prompts": "prompts",
  "@skills": "skills",
};
/** The params that MCP defines for these requests. */
const KNOWN_PARAMS = ["uri", "name", "arguments", "ref", "argument", "context", "cursor"];
/** The least restrictive decision first. */
const KINDS_BY_STRICTNESS = ["allow", "ask", "deny"];

/** Returns whether a call is a request for a resource, a prompt or a skill of a server. */
export function isOfferRequest({ id, method }: Pick<Call, "id" | "method">): boolean {
  return method !== undefined &&
    ["@resources", "@prompts", "@skills"].includes(splitToolId(id).tool);
}

/**
 * Returns whether the question about a call covers all resources, prompts or skills of its server.
 * The question about an address that the server did not list covers only this address.
 */
export function isAboutAll(call: Pick<Call, "id" | "method" | "isOffered">): boolean {
  return isOfferRequest(call) && !isUnlisted(call);
}

/** Returns lines for the question about a request for a resource or a prompt. */
export function offerFacts(call: Pick<Call, "id" | "method" | "isOffered">): readonly string[] {
  if (!isOfferRequest(call)) return [];
  if (isUnlisted(call)) {
    return ["No list that PML has of this server names the address: PML asks each time"];
  }
  const offers = OFFER_NAMES[splitToolId(call.id).tool] ?? "listed resources";
  return [`Yes covers all ${offers} of this server that are requested while this question is open`];
}

/**
 * Returns the decision about a request. `ruleVerdict` is the decision of the rules about
 * `SERVER:@resources`, and `pageVerdicts` has the decisions about the pinned tools that name the
 * address as their page. Asks about an address that the server did not list, even if a rule allows its
 * resources. Asks about members that MCP does not define, unless a rule allows the request.
 */
export function offerVerdict(
  call: Pick<Call, "id" | "method" | "isOffered" | "members"> & Partial<Pick<Call, "arguments">>,
  { ruleVerdict, pageVerdicts }: {
    readonly ruleVerdict: Verdict;
    readonly pageVerdicts: readonly Verdict[];
  },
): Verdict {
  if (ruleVerdict.kind === "deny") return ruleVerdict;
  const [page] = pageVerdicts.toSorted((one, other) =>
    KINDS_BY_STRICTNESS.indexOf(one.kind) - KINDS_BY_STRICTNESS.indexOf(other.kind)
  );
  const isAllowedByRule = ruleVerdict.kind === "allow" && ruleVerdict.source !== "defaults";
  if (page !== undefined) return page.kind === "ask" && isAllowedByRule ? ruleVerdict : page;
  if (ruleVerdict.kind !== "allow") return ruleVerdict;
  if (isUnlisted(call)) return UNLISTED_VERDICT;
  return !isAllowedByRule && hasUnknownMembers(call) ? MEMBERS_VERDICT : ruleVerdict;
}

function hasUnknownMembers(
  { method, members, arguments: params = {} }: Partial<
    Pick<Call, "method" | "members" | "arguments">
  >,
): boolean {
  return members !== undefined ||
    method !== undefined && Object.keys(params).some((name) => !KNOWN_PARAMS.includes(name));
}

function isUnlisted({ id, isOffered }: Pick<Call, "id" | "isOffered">): boolean {
  return isOffered !== true && ["@resources", "@skills"].includes(splitToolId(id).tool);
}

/**
 * Reads the client's description of itself: its name, and its capabilities.
 *
 * @module
 */

import { isObject, type JsonObject, objectOf } from "../../core/json.ts";
import type { ClientPeer, RequestContext } from "../../protocol/connection.ts";
import { META } from "../../protocol/envelope.ts";

/** Returns the capabilities in a request; otherwise those that its client declared before. */
export function capabilitiesOf(
  { envelope }: Pick<RequestContext, "envelope">,
  declared: unknown,
): JsonObject {
  return objectOf(envelope?.[META.capabilities] ?? declared);
}

/** Returns the name and the version of the client of a request, as it states them. */
export function clientInfoOf(
  { envelope }: Pick<RequestContext, "envelope">,
  peer: ClientPeer,
): JsonObject {
  return objectOf(envelope?.[META.client] ?? peer.getClientVersion());
}

/** Returns whether a client can show forms to its user. */
export function canShowForm({ elicitation }: JsonObject): boolean {
  if (!isObject(elicitation)) return false;
  const modes = Object.keys(elicitation);
  // Before there were modes, an empty object meant forms.
  return modes.length === 0 || modes.includes("form");
}

/** Returns whether a client fills in the defaults of a form that its user left empty. */
export function appliesDefaults({ elicitation }: JsonObject): boolean {
  const { applyDefaults = false } = objectOf(objectOf(elicitation).form);
  return applyDefaults !== false;
}

/** Returns whether a client can open pages for its user. */
export function canOpenPage({ elicitation }: JsonObject): boolean {
  return isObject(elicitation) && "url" in elicitation;
}

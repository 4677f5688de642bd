/**
 * The resources of PML itself: the state of each server, metrics, and stored outputs.
 *
 * @module
 */

import { type JsonObject, withoutUndefined } from "../core/json.ts";
import type { GatewayHost } from "./options.ts";

const MIME = "application/json";

/** PML's own resources, as `resources/list` returns them. */
export const OWN_RESOURCES: readonly JsonObject[] = [
  {
    uri: "pml://servers",
    name: "servers",
    title: "Servers of PML",
    description: "Every server that PML knows, its state, and the reason",
    mimeType: MIME,
  },
  {
    uri: "pml://metrics",
    name: "metrics",
    title: "Metrics of PML",
    description: "Calls, errors, latency, and the estimated tokens of answers",
    mimeType: MIME,
  },
];

/** The template of the addresses of stored outputs, as `resources/templates/list` returns it. */
export const OWN_TEMPLATES: readonly JsonObject[] = [
  {
    uriTemplate: "pml://results/{output}{?offset,limit,pointer,lines,grep}",
    name: "results",
    title: "Outputs kept by PML",
    description:
      "A part of an output that was too large for its answer: a page of the value at a JSON pointer, " +
      "`lines` of a text, such as 20-40, or what contains the text `grep`",
    mimeType: MIME,
  },
];

const STORED_OUTPUT = /^pml:\/\/results\/[a-z2-7]{12}\.[\w-]+(?:[?#]|$)/;

/** Returns whether a URI names a stored output, which was too large for its answer. */
export function isStoredOutput(uri: unknown): uri is string {
  return typeof uri === "string" && STORED_OUTPUT.test(uri);
}

/** Reads a page of a stored output. */
export async function readStoredOutput(
  uri: string,
  signal: AbortSignal,
  host: Pick<GatewayHost, "workflow" | "settings">,
): Promise<JsonObject> {
  const { largeResults } = await host.workflow();
  const { text, mimeType } = await largeResults.read({ uri, actor: host.settings().actor, signal });
  return { contents: [{ uri, mimeType, text }] };
}

/** Returns whether a URI is one of PML's own resources. */
export function isOwnResource(uri: unknown): boolean {
  return OWN_RESOURCES.some((resource) => resource.uri === uri);
}

/** Returns whether an address belongs to the skill of PML itself. */
export function isOwnSkill(uri: unknown): boolean {
  return typeof uri === "string" && uri.startsWith("skill://pml/using-pml");
}

/** Reads one of PML's own resources. For `pml://servers`, first loads unknown lists of tools. */
export async function readOwnResource(
  uri: unknown,
  { servers, metrics }: Pick<GatewayHost, "servers" | "metrics">,
): Promise<JsonObject> {
  if (uri === "pml://servers") await servers.lists.prepare();
  const value = uri === "pml://metrics"
    ? metrics.report()
    : servers.shownStates().map((state) => withoutUndefined(state));
  return { contents: [{ uri: String(uri), mimeType: MIME, text: JSON.stringify(value, null, 2) }] };
}

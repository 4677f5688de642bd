/**
 * Converts refusals of the store to responses with a hint.
 *
 * @module
 */

import { errorResponse, quoted, type RegistryResponse } from "@casys/pml/registry";
import type { Refusal, Shares } from "../store/store.ts";

/** The subject of a refused change. */
interface Subject {
  readonly fqdn: string;
  readonly version?: string | undefined;
  readonly tag?: string;
}

const SHARE_MESSAGES: Readonly<Record<keyof Shares, string>> = {
  versions: "This name has the maximum number of versions",
  names: "This organisation has the maximum number of names",
  waiting: "This organisation has the maximum number of waiting versions",
};

/** The header with the time at which the existing version was signed. */
const ISSUED_HEADER = "x-pml-issued";

/** Returns the response to a change that the store refused. */
export function refusalResponse(
  refusal: Refusal,
  { fqdn, version, tag }: Subject = { fqdn: "" },
): RegistryResponse {
  const name = quoted(version === undefined ? fqdn : `${fqdn}@${version}`);
  switch (refusal.why) {
    case "key":
      return errorResponse(401, "unauthorized", {
        message: "The publisher key is missing, unknown or revoked. " +
          "The hub's operator creates one with `pml-hub key add ORGANISATION`",
        headers: { "www-authenticate": "Bearer" },
      });
    case "exists":
      return errorResponse(409, "version_exists", {
        message: `${name} exists with other content. Publish it as a new version`,
        ...refusal.issued && { headers: { [ISSUED_HEADER]: refusal.issued } },
      });
    case "missing":
      return errorResponse(404, "not_found", {
        message: `There is no ${tag === undefined || version !== undefined ? name : quoted(tag)}`,
      });
    case "too_wide":
      return errorResponse(403, "forbidden", {
        message:
          `${name} would be in a namespace that is a whole top-level domain. Choose another name`,
      });
    case "foreign":
      return errorResponse(403, "forbidden", {
        message: `The namespace ${quoted(refusal.namespace)} belongs to another organisation. ` +
          "Choose another name, or ask the hub's operator for it",
      });
    case "look_alike":
      return errorResponse(403, "look_alike", {
        message:
          `${name} looks like ${quoted(refusal.namespace)}, which belongs to another owner. ` +
          "Choose another name, or ask the hub's operator for it",
      });
    case "rate":
      return errorResponse(429, "rate_limited", {
        message: "This key has made the maximum number of changes for this minute",
        headers: { "retry-after": String(refusal.seconds) },
      });
    case "full":
      return errorResponse(403, "full", {
        message: `${SHARE_MESSAGES[refusal.share]}. Ask the hub's operator`,
      });
  }
}

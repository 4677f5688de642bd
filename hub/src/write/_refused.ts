/**
 * Converts refusals of the store into responses with a hint.
 *
 * @module
 */

import { errorResponse, quoted, type RegistryResponse } from "@casys/pml/registry";
import type { Refusal, Shares } from "../store/store.ts";

/** The subject of a refused change. */
interface Wanted {
  readonly fqdn: string;
  readonly version?: string | undefined;
  readonly tag?: string;
}

const SHARE: Readonly<Record<keyof Shares, string>> = {
  versions: "This name has as many versions as a name may have",
  names: "This organisation has as many names as an organisation may have",
  waiting: "This organisation has as many versions waiting as may wait",
};

/** The header with the time at which the version that is there was signed. */
const ISSUED = "x-pml-issued";

/** Answers a change that was not made. */
export function refused(
  refusal: Refusal,
  { fqdn, version, tag }: Wanted = { fqdn: "" },
): RegistryResponse {
  const name = quoted(version === undefined ? fqdn : `${fqdn}@${version}`);
  switch (refusal.why) {
    case "key":
      return errorResponse(401, "unauthorized", {
        message: "This hub wants a key that it knows and that was not revoked. " +
          "Its operator makes one with `pml-hub key add ORGANISATION`",
        headers: { "www-authenticate": "Bearer" },
      });
    case "exists":
      return errorResponse(409, "version_exists", {
        message: `${name} is there with other content. Give it a new version`,
        ...refusal.issued && { headers: { [ISSUED]: refusal.issued } },
      });
    case "missing":
      return errorResponse(404, "not_found", {
        message: `There is no ${tag === undefined || version !== undefined ? name : quoted(tag)}`,
      });
    case "too_wide":
      return errorResponse(403, "forbidden", {
        message: `${name} is in the namespace of all under a domain. Choose another name`,
      });
    case "foreign":
      return errorResponse(403, "forbidden", {
        message: `The namespace ${quoted(refusal.namespace)} is of another organisation. ` +
          "Choose another name, or ask the hub's operator for it",
      });
    case "look_alike":
      return errorResponse(403, "look_alike", {
        message: `${name} looks like ${quoted(refusal.namespace)}, which is another's. ` +
          "Choose another name, or ask the hub's operator for it",
      });
    case "rate":
      return errorResponse(429, "rate_limited", {
        message: "This key has made as many changes as a key may make a minute",
        headers: { "retry-after": String(refusal.seconds) },
      });
    case "full":
      return errorResponse(403, "full", {
        message: `${SHARE[refusal.share]}. Ask the hub's operator`,
      });
  }
}

/**
 * What requests about the resources and prompts of servers are about, in the words of their servers.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";
import type { Offers } from "./_offers.ts";
import { text } from "./_params.ts";
import type { Wanted } from "./_server_requests.ts";

/** Finds the server of what a request reads, gets or completes, and the name that it has there. */
export async function wantedBy(
  offers: Offers,
  { method, params }: { readonly method: string; readonly params: JsonObject },
): Promise<Wanted> {
  switch (method) {
    case "prompts/get": {
      const { server, name } = await offers.prompt(text(params, "name"));
      return { door: "@prompts", server, method, params: { ...params, name } };
    }
    case "completion/complete": {
      const ref = objectOf(params.ref);
      const about = ref.type === "ref/prompt" ? "prompts/get" : "resources/read";
      const wanted = await wantedBy(offers, { method: about, params: ref });
      return { ...wanted, method, params: { ...params, ref: wanted.params } };
    }
    default: {
      const { server, name } = await offers.resource(text(params, "uri"));
      return { door: "@resources", server, method, params: { ...params, uri: name } };
    }
  }
}

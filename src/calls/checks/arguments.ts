/**
 * Refuses arguments that the tool does not take.
 *
 * @module
 */

import type { Maybe } from "../../core/maybe.ts";
import type { Server } from "../../servers/server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { CallContext } from "../context.ts";
import type { Check } from "./check.ts";

/** Checks arguments against the schemas of tools. */
export interface ArgumentSchemas {
  /** Throws or rejects with BAD_ARGUMENTS for arguments that the tool does not take. */
  checkArguments(
    call: CallContext,
    tool: { readonly definition: ToolDefinition; readonly server: Server },
  ): Maybe<undefined>;
}

/** Returns a check of arguments. Requests other than calls of tools have no schema. */
export function argumentsAreAcceptable(schemas: ArgumentSchemas): Check {
  return (call) => {
    if (call.method !== undefined) return undefined;
    const definition = call.definition();
    return definition instanceof Promise
      ? definition.then((loaded) => checkArguments(call, loaded, schemas))
      : checkArguments(call, definition, schemas);
  };
}

function checkArguments(
  call: CallContext,
  definition: ToolDefinition,
  schemas: ArgumentSchemas,
): Maybe<undefined> {
  // guard: marked-arguments
  call.assertMatches?.(definition);
  const { server } = call;
  let checking: Maybe<undefined> = undefined;
  // guard: schema-arguments
  checking = schemas.checkArguments(call, { definition, server });
  return checking;
}

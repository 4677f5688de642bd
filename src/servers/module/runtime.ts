/**
 * Opens modules, which run in the sandbox.
 *
 * @module
 */

import { ModuleServer } from "./module_server.ts";
import type { LoadRuntime } from "../host.ts";

/** Loads the runner of modules. */
export const load: LoadRuntime = async ({ machine }) => {
  const modules = await machine.modules();
  return {
    open: (options, { use, fetchCode }) => {
      if (use === undefined) throw new Error(`no code was found for ${options.listing.name}`);
      return new ModuleServer(options, modules, { use, ...fetchCode && { fetchCode } });
    },
  };
};

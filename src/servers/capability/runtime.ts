/**
 * Opens capabilities: those that the user saved, and those of registries.
 *
 * @module
 */

import type { ToolId } from "../../core/tool_id.ts";
import type { Namespace, SavedServerOptions } from "../../workflow/capabilities.ts";
import type { LoadRuntime } from "../host.ts";
import { callsOf, codeManifest, moduleOf } from "../kinds.ts";

/** Loads the saved capabilities, and the sandbox, which checks their values. */
export const load: LoadRuntime = async (host) => {
  const [capabilities, modules] = await Promise.all([
    host.capabilities(),
    host.machine.modules(),
  ]);
  const wrong: SavedServerOptions["wrong"] = (...of) => modules.wrongValue(...of);
  return {
    open: ({ definition, manifest, fetched = () => Promise.resolve(), ...options }) => {
      const code = manifest && codeManifest(manifest);
      const module = definition && moduleOf(definition);
      if (code === undefined || module === undefined) {
        const namespace = options.listing.definition as Namespace; // the directory took it from there
        return capabilities.server(namespace, { ...options, wrong });
      }
      const { fqdn, integrity: hash } = code;
      const id = fqdn as ToolId; // only a name with an action has such a manifest
      const place = { id, hash, path: module.path, calls: callsOf(code) ?? [], fetched };
      return capabilities.ofRegistry(place, { ...options, wrong });
    },
  };
};

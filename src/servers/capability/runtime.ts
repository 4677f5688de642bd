/**
 * Opens capabilities: those that the user saved, and those of registries.
 *
 * @module
 */

import type { ToolId } from "../../core/tool_id.ts";
import type { LoadRuntime } from "../host.ts";
import { callsOf, codeManifest, moduleOf } from "../kinds.ts";
import {
  type CapabilityNamespace,
  CapabilityServer,
  type CheckValue,
} from "./capability_server.ts";

/** Loads the saved capabilities, and the sandbox, which checks their values. */
export const load: LoadRuntime = async (host) => {
  const [capabilities, modules] = await Promise.all([
    host.capabilities(),
    host.machine.modules(),
  ]);
  const wrong: CheckValue = (...of) => modules.wrongValue(...of);
  return {
    open: ({ definition, manifest, fetched = () => Promise.resolve(), ...options }) => {
      const code = manifest && codeManifest(manifest);
      const module = definition && moduleOf(definition);
      if (code === undefined || module === undefined) {
        // The directory took it from there.
        const namespace = options.listing.definition as CapabilityNamespace;
        return new CapabilityServer(options, { capabilities, namespace, wrong });
      }
      const { fqdn, integrity: hash } = code;
      const id = fqdn as ToolId; // only a name with an action has such a manifest
      const namespace = { name: options.listing.name, hashes: new Map([[id, hash]]) };
      const outside = { id, hash, path: module.path, calls: callsOf(code) ?? [], fetched };
      return new CapabilityServer(options, { capabilities, namespace, outside, wrong });
    },
  };
};

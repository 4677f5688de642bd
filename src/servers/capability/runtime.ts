/**
 * Opens the capabilities that the user saved, and capabilities of registries.
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

/** Loads the saved capabilities, and the sandbox, which checks their arguments. */
export const load: LoadRuntime = async (host) => {
  const [capabilities, modules] = await Promise.all([
    host.capabilities(),
    host.machine.modules(),
  ]);
  const checkValue: CheckValue = (...args) => modules.findWrongValue(...args);
  return {
    open: (options, { definition, manifest, fetchCode = () => Promise.resolve() }) => {
      const code = manifest && codeManifest(manifest);
      const module = definition && moduleOf(definition);
      if (code === undefined || module === undefined) {
        // Listings of saved capabilities have a namespace as their definition.
        const namespace = options.listing.definition as CapabilityNamespace;
        return new CapabilityServer(options, { capabilities, namespace, checkValue });
      }
      const { fqdn, integrity: hash } = code;
      const id = fqdn as ToolId; // only a name with an action has such a manifest
      const namespace = { name: options.listing.name, hashes: new Map([[id, hash]]) };
      const registryCapability = {
        id,
        hash,
        path: module.path,
        calls: callsOf(code) ?? [],
        fetchContent: fetchCode,
      };
      return new CapabilityServer(options, {
        capabilities,
        namespace,
        registryCapability,
        checkValue,
      });
    },
  };
};

/**
 * Opens servers in the cloud, which registries, the list of PML or the list of the hub define.
 *
 * @module
 */

import { CloudServer } from "./cloud_server.ts";
import type { LoadRuntime } from "../host.ts";
import type { CloudManifest } from "./kind.ts";

/** Loads the client of the cloud. */
export const load: LoadRuntime = async ({ machine }) => {
  const cloud = await machine.cloud();
  return {
    open: (options, { manifest }) => {
      const { hub, cloudUpstreams } = machine;
      const { name } = options.listing;
      const entry = { name, manifest: manifest as CloudManifest | undefined }; // of this kind
      return new CloudServer(options, entry, { cloud, hub, upstreams: cloudUpstreams });
    },
  };
};

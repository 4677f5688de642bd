/**
 * Opens servers in the cloud, of registries and of the lists of PML and the hub.
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
    open: ({ manifest, ...options }) => {
      const { hub, far } = machine;
      const { name } = options.listing;
      const entry = { name, manifest: manifest as CloudManifest | undefined }; // it is of this kind
      return new CloudServer(options, entry, { cloud, hub, upstreams: far });
    },
  };
};

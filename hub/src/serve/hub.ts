/**
 * Listens for the clients of a hub.
 *
 * @module
 */

import { openReference, type ReferenceRegistry, type Signer } from "@casys/pml/registry";
import type { HubStore } from "../store/store.ts";
import { respond } from "./routes.ts";

/** How to listen. */
export interface HubOptions {
  readonly store: HubStore;
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  /** The URL that clients configure, if a proxy stands before the hub. */
  readonly publicUrl?: string | undefined;
  readonly signer?: Signer | undefined;
  readonly warn: (message: string) => void;
}

/** A hub that listens. */
export interface Hub extends ReferenceRegistry {
  /** Answers what has come, waits no longer than this, and takes nothing more. */
  stop(ms: number): Promise<void>;
}

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/** Starts a hub that listens until it is disposed. The store stays open. */
export async function openHub(options: HubOptions): Promise<Hub> {
  const { store, publicUrl, signer, warn } = options;
  let isStopping = false;
  const address = Promise.withResolvers<string>();
  const hosts = new Set(publicUrl === undefined ? [] : [new URL(publicUrl).host]);
  const registry = await openReference(async (asked) => {
    const url = await address.promise;
    return await respond(asked, {
      store,
      sign: signer &&
        (({ manifest, created }) => signer.sign(manifest, { registry: url, issued: created })),
      isStopping: () => isStopping,
    });
  }, { ...options, hosts, onError: ({ message }) => warn(`Cannot answer a request: ${message}`) });
  const { port } = new URL(registry.url);
  for (const name of LOOPBACK) hosts.add(`${name}:${port}`).add(name);
  address.resolve(publicUrl ?? registry.url);
  return {
    ...registry,
    stop: async (ms) => {
      isStopping = true;
      await registry.drain(ms);
    },
  };
}

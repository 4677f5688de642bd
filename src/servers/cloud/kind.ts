/**
 * The server kind "cloud": servers that a hub, or the operator of an address, runs.
 *
 * @module
 */

import { quoted } from "../../core/json.ts";
import type { Manifest } from "../manifest.ts";
import { isHeader } from "../http/kind.ts";
import type { ManifestReader, MemberKind, ServerKind } from "../kind.ts";

/** The manifest of a server that the cloud runs. */
export interface CloudManifest extends Manifest {
  /** The URL to which calls are sent. */
  readonly proxyTo: string;
  /** The address to which the hub at that URL forwards calls. */
  readonly upstream?: ManifestUpstream;
}

/** The facts that a hub publishes about a server to which it forwards calls. */
export interface ManifestUpstream {
  readonly host: string;
  /** The names of the headers that the hub sends. */
  readonly headers: readonly string[];
  /** The hash of the whole address and of all headers. */
  readonly hash: string;
}

/** The default address of the hub. */
export const CLOUD_URL = "https://pml.casys.ai";

const HOST: MemberKind<string> = {
  wanted: "a host",
  is: (value) => typeof value === "string" && /^[\w.:[\]-]{1,255}$/.test(value),
};
const HEADERS = {
  what: "names of headers",
  is: isHeader,
};

/** The kind of servers in the cloud. Registries and the list that ships with PML define them. */
export const CLOUD: ServerKind<CloudManifest> = {
  name: "cloud",
  pinnedAs: "cloud",
  isSandboxed: false,
  isOnline: true,
  notifies: true,
  checksItself: true,
  isInCloud: true,
  hasUnlistedTools: true,
  manifest: {
    text: {
      title: "cloud server",
      summary: "It runs in the cloud: each call goes through the hub, whose operator can read it " +
        "and the keys that go with it.",
    },
    read: (reader) => ({
      proxyTo: reader.address("proxy_to", reader.entry.proxy_to),
      ...upstreamOf(reader),
    }),
    facts: ({ proxyTo }) => ({ url: proxyTo }),
    definition: () => undefined,
    lines: (manifest) => [
      `a server in the cloud: each call goes to ${quoted(manifest.proxyTo, Infinity)}, whose ` +
      "operator can read it and the keys that go with it",
      ...upstreamLines(manifest),
    ],
    keyLines: ({ proxyTo, envRequired }) => {
      const { host } = new URL(proxyTo);
      return envRequired.map((name) => `Your key ${name} goes with each call to ${host}`);
    },
    accountLines: ({ proxyTo }, hub) =>
      isProxy(proxyTo, hub)
        ? [`Your PML_API_KEY goes with all that is sent to ${new URL(proxyTo).host}`]
        : [],
  },
};

function upstreamOf(reader: ManifestReader): { readonly upstream?: ManifestUpstream } {
  const upstream = reader.objectIfAny("upstream", reader.entry.upstream);
  if (upstream === undefined) return {};
  const host = reader.read("upstream.host", upstream.host, HOST);
  const named = reader.texts("upstream.headers", upstream.headers, HEADERS);
  const headers = [...new Set(named)].sort();
  return { upstream: { host, headers, hash: reader.integrity("upstream.hash", upstream.hash) } };
}

/**
 * Returns whether the hub proxies a server at this address. A manifest can contain any address, but
 * PML sends the key of the user's account only to the hub. `hub` is the configured address of the
 * hub.
 */
export function isProxy(url: string, hub: string | undefined): boolean {
  const address = URL.parse(url);
  return address?.origin === new URL(hub ?? CLOUD_URL).origin &&
    /^\/mcp\/proxy\/[^/]+$/.test(address.pathname) && address.search === "";
}

/**
 * Returns lines for the user with the host to which a hub forwards calls, if the manifest has it.
 */
export function upstreamLines({ upstream }: CloudManifest): readonly string[] {
  if (upstream === undefined) return [];
  const { host, headers } = upstream;
  const sent = headers.length === 0 ? "" : `, with the headers ${headers.join(", ")}`;
  return [`Its hub passes all of it on to ${quoted(host, Infinity)}${sent}`];
}

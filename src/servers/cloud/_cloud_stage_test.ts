/**
 * A cloud as calls reach it, with its own keys and home.
 *
 * @module
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FakeCloud } from "../../../tests/kit/fake_cloud.ts";
import { Keys } from "../../config/keys.ts";
import { checkedCall, knownDouble } from "../_server_double_test.ts";
import { type Call, NO_CLIENT } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import type { Fetch } from "../../core/fetch.ts";
import type { CloudManifest } from "./kind.ts";
import { toolId } from "../../core/tool_id.ts";
import { upstreamsHost } from "../client/_upstreams_host_test.ts";
import { Upstreams } from "../client/upstreams.ts";
import { CloudServer } from "./cloud_server.ts";
import { GuardedFetch } from "../../transport/http/client/guarded_fetch.ts";
import { HubRouting } from "./hub_routing.ts";
import { CLOUD_URL } from "./kind.ts";
import { Cloud, type CloudEntry } from "./rpc.ts";

/** The key of the account, unless another one is given. */
export const ACCOUNT = "account-key-CANARY";

/** The options of `makeStage()`. */
export interface CloudStageOptions {
  /** The address of the hub in the configuration. */
  readonly url?: string;
  readonly variables?: Readonly<Record<string, string>>;
  /** Null for no key. */
  readonly apiKey?: string | null;
  readonly manifests?: Readonly<Record<string, CloudManifest>>;
  /** Other clouds on this machine, which represent public ones. */
  readonly named?: readonly FakeCloud[];
}

/** A cloud as calls reach it. */
export interface CloudStage extends AsyncDisposable {
  /** Returns the lines that the user sees for a call, as one text. */
  facts(server: string): string;
  /** The addresses that received requests. */
  readonly asked: readonly string[];
  call(
    id: string,
    args?: Call["arguments"],
    more?: Partial<Call>,
  ): Promise<{ readonly content: readonly Readonly<Record<string, unknown>>[] }>;
  define(server: string): unknown;
}

/** Opens connections to clouds on this machine. */
export async function makeStage(options: CloudStageOptions): Promise<CloudStage> {
  const home = await mkdtemp(join(tmpdir(), "pml-cloud-"));
  const network = new GuardedFetch();
  const requests: string[] = [];
  const named = options.named?.map(({ port }) => `127.0.0.1:${port}`) ?? [];
  const cloud = openCloud(options, home, async (to, how) => {
    requests.push(to);
    return await network.fetch(to, { ...how, named: new Set([...how.named, ...named]) });
  });
  const host = upstreamsHost(home, {
    limits: { ...LIMITS, idleMs: 60_000, idleChildren: 8 },
    upstreamOf: (name) => cloud.upstreamOf(entryOf(name)),
    mayFollow: () => false,
  });
  const upstreams = new Upstreams(host);
  const entryOf = (name: string): CloudEntry => ({ name, manifest: options.manifests?.[name] });
  const hub = new HubRouting(
    {
      home,
      fetch: () => Promise.reject(new TypeError("the list of the hub is asked elsewhere")),
      hubAddress: { url: CLOUD_URL, isNamed: false },
    },
    { cloud: () => undefined },
    { warn: () => {} },
  );
  const serverOf = (name: string) => {
    const known = knownDouble(name, { kind: "cloud" });
    return new CloudServer(known, entryOf(name), { cloud, hub, upstreams });
  };
  const always = {
    ...{ via: "call", actor: "local", callId: "1" },
    ...{ cancellation: new Cancellation(), client: NO_CLIENT },
  };
  return {
    facts: (name) => cloud.facts(entryOf(name)).join(),
    asked: requests,
    call: async (id, args = {}, more = {}) => {
      const [server = "", tool = ""] = id.split(":");
      const call = checkedCall({ ...always, id: toolId(server, tool), arguments: args, ...more });
      const outcome = await serverOf(server).call(call);
      if (outcome.kind === "ask") throw new TypeError("it is no question");
      return outcome.result;
    },
    define: (server) =>
      serverOf(server).definitionFor({ ...always, id: toolId(server, "run"), arguments: {} }),
    [Symbol.asyncDispose]: async () => {
      await upstreams[Symbol.asyncDispose]();
      network[Symbol.dispose]();
      await rm(home, { recursive: true });
    },
  };
}

const LIMITS = { startMs: 5_000, lineBytes: 1_000_000, resultBytes: 1_000_000, catalogTools: 100 };

function openCloud(options: CloudStageOptions, home: string, fetch: Fetch): Cloud {
  const { url, variables = {}, apiKey = ACCOUNT } = options;
  const set = new Map(Object.entries(variables));
  const keys = new Keys({
    environment: () => ({ get: (name) => set.get(name), apiKey: apiKey ?? undefined, home }),
    trustedRoot: () => undefined,
    register: () => {},
    warn: () => {},
  });
  return new Cloud({ fetch, limits: LIMITS, home: "/dev/null", cloudUrl: url }, keys);
}

/** Creates the manifest of a server in the cloud. */
export function manifest(
  name: string,
  proxyTo: string,
  envRequired: readonly string[],
): CloudManifest {
  return {
    kind: "cloud",
    fqdn: name,
    name,
    version: "1.0.0",
    description: undefined,
    tools: [],
    envRequired,
    warnings: [],
    routing: "cloud",
    proxyTo,
  };
}

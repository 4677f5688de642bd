import { StartProgress } from "./start_progress.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** Clients that declare nothing and get nothing. */
export const NO_CLIENTS: UpstreamClients = {
  level: undefined,
  capabilities: () => ({}),
  clientInfo: () => undefined,
  onListChanged() {},
  onResourceUpdated() {},
  onLog() {},
  onTask() {},
  onElicitationComplete() {},
  onNotification() {},
};

/** The PML that connections of a test belong to. It has no client and no roots. */
export function upstreamsHost(
  home: string,
  more: Pick<UpstreamsHost, "limits" | "upstreamOf"> & Partial<UpstreamsHost>,
): UpstreamsHost {
  return {
    home,
    workspace: home,
    clients: NO_CLIENTS,
    metrics: undefined,
    tracer: undefined,
    starts: new StartProgress(),
    roots: () => Promise.resolve([]),
    mayFollow: () => true,
    withoutSecrets: (value) => value,
    logServer() {},
    ...more,
  };
}

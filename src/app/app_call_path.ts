/**
 * Opens the call path of a house. It is loaded, with all that runs servers, by the first call.
 *
 * @module
 */

import type { UpstreamsOptions } from "../mcp_client/upstreams.ts";
import { builtins } from "../modules/builtins.ts";
import type { App } from "./app.ts";
import { CallPath } from "./call_path.ts";

/** Opens the call path; nothing is started yet. */
export async function callPathOf(app: App): Promise<CallPath> {
  const { servers, metrics, backlog, directory } = app;
  const [pins, schemas] = await Promise.all([app.pins(), app.schemas()]);
  return new CallPath({
    ...app.parts,
    ...{ pins, schemas, servers, metrics, backlog, directory },
    registries: () => app.registries(),
    capabilities: () => app.capabilities(),
    builtins: builtins(),
    events: {
      told: toldTo(app),
      capabilities: () => servers.able,
      level: () => app.level,
    },
  });
}

/** Has the clients told what servers say; before there is a gateway there is no client either. */
function toldTo(app: App): UpstreamsOptions["told"] {
  return {
    changed: (server, list) => app.servers.changes.note(server, list),
    updated: (server, name) => app.openGateway?.clients.updated({ server, name }),
    logged: (message) => app.openGateway?.clients.logged(message),
    task: (server, state) => app.openGateway?.taskChanged(server, state),
    elicited: (params) => app.openGateway?.clients.elicited(params),
  };
}

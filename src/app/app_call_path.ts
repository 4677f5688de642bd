/**
 * Opens the call path. The first call loads it, with everything that runs servers.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import { type JsonObject, objectOf, quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import { isSkillAddress } from "../protocol/skills.ts";
import { toolId } from "../core/tool_id.ts";
import type { OtherMembers } from "../protocol/call.ts";
import type { UpstreamClients } from "../servers/client/upstream_clients.ts";
import type { ServiceParts } from "../servers/service_parts.ts";
import type { PinEvent } from "../policy/pins.ts";
import type { App } from "./app.ts";
import type { UseMemory } from "../workflow/use_memory.ts";
import type { CallUse, UseNotes } from "../calls/pipeline.ts";
import { CallPath } from "./call_path.ts";

/** Opens the call path; nothing is started yet. */
export async function openCallPath(app: App): Promise<CallPath> {
  const { servers, metrics, backlog, clientRoots, directory } = app;
  const [pins, schemas] = await Promise.all([app.pins(), app.schemas()]);
  const parts: ServiceParts = {
    ...app.parts,
    pins,
    servers,
    metrics,
    backlog,
    clientRoots,
    directory,
    lateParts: app,
    tracer: app.traces?.tracer,
    spares: app,
    clients: new AppClients(app),
  };
  const callPath = new CallPath(parts, schemas, new UseRecorder(app));
  pins.listen((event) => onPin(event, { app, callPath }));
  recordChanges(app, callPath);
  return callPath;
}

function onPin(
  { event, ...about }: PinEvent,
  { app: { log, servers }, callPath }: { readonly app: App; readonly callPath: CallPath },
): void {
  callPath.record(`pin ${event}`, { about: { ...about } });
  servers.lists.review(about.server).catch((error) =>
    log.debug(`Cannot review the tools of a server: ${messageOf(error)}`)
  );
  if (event !== "stale") return;
  const { server, tool } = about;
  const what = tool === undefined ? quoted(server) : quoted(`${server}:${tool}`, 200);
  log.warn(`${what} is not the approved one: a call runs only after you approve the change`, {
    server,
  });
  servers.lists.expire(server);
}

/** Records changes of the configuration and of the trust in it. */
function recordChanges({ policy, closing }: App, callPath: CallPath): void {
  const state = () => {
    const { loaded: { file, userConfig }, config: { trusted, problem } } = policy.now;
    const hashes = { workspace: file?.hash ?? null, person: userConfig.hash ?? null };
    return { ...hashes, trusted, problem: problem?.message ?? null };
  };
  let lastState = JSON.stringify(state());
  policy.onChange(() => {
    // An app of a revoked identity may read the change that ends it after its journal was closed.
    if (closing.aborted) return;
    const about = state();
    if (JSON.stringify(about) === lastState) return;
    lastState = JSON.stringify(about);
    callPath.record("configuration changed", { about });
  });
}

/**
 * Adds calls to the memory of tool use, which is loaded after the first call, and to the traces.
 */
class UseRecorder implements UseNotes {
  readonly #app: App;
  #memory: UseMemory | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  note(use: CallUse): void {
    this.#trace(use);
    if (this.#memory !== undefined) return this.#memory.recordCall(use);
    if (!this.#app.config().memory) return;
    this.#app.openMemory().then(
      (opened) => (this.#memory = opened).recordCall(use),
      (error) => this.#app.log.debug(`Cannot load the memory of tools: ${messageOf(error)}`),
    );
  }

  /**
   * Records the span of a call whose tool PML runs itself. The client of a server traces its calls.
   */
  #trace({ call, since, ended, outcome }: CallUse): void {
    const tracer = this.#app.traces?.tracer;
    if (tracer === undefined || call.server.checksItself || call.method !== undefined) return;
    const { names: { server, tool }, client: { trace: parent } } = call;
    const result = outcome?.kind === "result" ? outcome.result : undefined;
    tracer.recordRun({ tool, server, parent, since, ended, result });
  }
}

/**
 * Adds sampling with tools to capabilities. Memoized, because callers compare the results by
 * identity.
 */
const addSampling = memoized((capabilities: JsonObject): JsonObject => ({
  ...capabilities,
  sampling: { ...objectOf(capabilities.sampling), tools: {} },
}));

/** The clients of the app, for servers. Until the gateway is open, there is no client. */
class AppClients implements UpstreamClients {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  get level(): string | undefined {
    return this.#app.level;
  }

  get onRequest(): UpstreamClients["onRequest"] {
    return this.#app.clientQuestions.askClient;
  }

  /** Returns the capabilities that servers see: PML adds sampling if the user configured it. */
  capabilities(declared = this.#app.servers.lists.capabilities): JsonObject {
    return this.#app.config().sampling === undefined ? declared : addSampling(declared);
  }

  clientInfo(info?: JsonObject): JsonObject | undefined {
    return this.#app.config().clientName ? info ?? this.#app.onlyClient : undefined;
  }

  onListChanged(...change: Parameters<UpstreamClients["onListChanged"]>): void {
    this.#app.servers.lists.noteChange(...change);
  }

  onResourceUpdated(server: string, name: string, members?: OtherMembers): void {
    // The user may have denied the resource after the client subscribed to it.
    const ruleName = isSkillAddress(name) ? "@skills" : "@resources";
    if (this.#app.policy.now.judge(toolId(server, ruleName)).kind === "deny") return;
    this.#app.openGateway?.clients.notifyUpdated({ server, name }, members);
  }

  onLog(message: JsonObject, members?: JsonObject): void {
    this.#app.openGateway?.clients.notifyLog(message, members);
  }

  onTask(server: string, state: JsonObject): void {
    this.#app.openGateway?.notifyTask(server, state);
  }

  onElicitationComplete(params: JsonObject, members?: JsonObject): void {
    this.#app.openGateway?.clients.notifyElicited(params, members);
  }

  onNotification(...[server, notification]: Parameters<UpstreamClients["onNotification"]>): void {
    const { openGateway, log } = this.#app;
    if (openGateway !== undefined) return openGateway.passOnNotification(server, notification);
    const name = quoted(notification.method, 100);
    log.debug(`A notification ${name} was not passed on: there is no client`, { server });
  }
}

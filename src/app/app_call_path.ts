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
import type { PinEvent } from "../policy/pins.ts";
import type { App } from "./app.ts";
import type { UseMemory } from "../workflow/use_memory.ts";
import type { CallUse, UseNotes } from "../calls/pipeline.ts";
import { CallPath } from "./call_path.ts";

/** Opens the call path; nothing is started yet. */
export async function callPathOf(app: App): Promise<CallPath> {
  const { servers, metrics, backlog, clientRoots, directory } = app;
  const [pins, schemas] = await Promise.all([app.pins(), app.schemas()]);
  const path = new CallPath({
    ...app.parts,
    pins,
    schemas,
    servers,
    metrics,
    backlog,
    clientRoots,
    directory,
    parts: app,
    uses: new RememberedUses(app),
    spares: app,
    clients: new AppClients(app),
  });
  pins.listen((event) => onPin(event, { app, path }));
  recordChanges(app, path);
  return path;
}

function onPin(
  { event, ...about }: PinEvent,
  { app: { log, servers }, path }: { readonly app: App; readonly path: CallPath },
): void {
  path.record(`pin ${event}`, { about: { ...about } });
  servers.lists.review(about.server).catch((error) =>
    log.debug(`Cannot look at the tools of a server again: ${messageOf(error)}`)
  );
  if (event !== "stale") return;
  const { server, tool } = about;
  const what = tool === undefined ? quoted(server) : quoted(`${server}:${tool}`, 200);
  log.warn(`The next call of ${what} asks, because it is not the approved one`, { server });
  servers.lists.expire(server);
}

/** Records changes of the configuration and of the trust in it. */
function recordChanges({ policy }: App, path: CallPath): void {
  const state = () => {
    const { loaded: { file, person }, config: { trusted, problem } } = policy.now;
    const [workspace, own] = [file?.hash ?? null, person.hash ?? null];
    return { workspace, person: own, trusted, problem: problem?.message ?? null };
  };
  let lastState = JSON.stringify(state());
  policy.onChange(() => {
    const about = state();
    if (JSON.stringify(about) === lastState) return;
    lastState = JSON.stringify(about);
    path.record("configuration changed", { about });
  });
}

/** Remembers calls. The memory is loaded after the first call. */
class RememberedUses implements UseNotes {
  readonly #app: App;
  #memory: UseMemory | undefined;

  constructor(app: App) {
    this.#app = app;
  }

  note(use: CallUse): void {
    if (this.#memory !== undefined) return this.#memory.note(use);
    if (!this.#app.config().memory) return;
    this.#app.memory().then(
      (opened) => (this.#memory = opened).note(use),
      (error) => this.#app.log.debug(`Cannot load the memory of tools: ${messageOf(error)}`),
    );
  }
}

/** Adds sampling with tools: the same object for the same capabilities, which are compared often. */
const sampling = memoized((able: JsonObject): JsonObject => ({
  ...able,
  sampling: { ...objectOf(able.sampling), tools: {} },
}));

/** The clients of the app. Before there is a gateway there is no client. */
class AppClients implements UpstreamClients {
  readonly #app: App;

  constructor(app: App) {
    this.#app = app;
  }

  get level(): string | undefined {
    return this.#app.level;
  }

  get asked(): UpstreamClients["asked"] {
    return this.#app.clientQuestions.asked;
  }

  /** Returns the capabilities of the client for servers. PML adds sampling if it is configured. */
  capabilities(able = this.#app.servers.lists.able): JsonObject {
    return this.#app.config().sampling === undefined ? able : sampling(able);
  }

  clientInfo(info?: JsonObject): JsonObject | undefined {
    return this.#app.config().clientName ? info ?? this.#app.onlyClient : undefined;
  }

  changed(...change: Parameters<UpstreamClients["changed"]>): void {
    this.#app.servers.lists.changed(...change);
  }

  updated(server: string, name: string, members?: OtherMembers): void {
    // A rule that came after the client followed the resource ends its updates.
    const ruleName = isSkillAddress(name) ? "@skills" : "@resources";
    if (this.#app.policy.now.judge(toolId(server, ruleName)).kind === "deny") return;
    this.#app.openGateway?.clients.updated({ server, name }, members);
  }

  logged(message: JsonObject, members?: JsonObject): void {
    this.#app.openGateway?.clients.logged(message, members);
  }

  task(server: string, state: JsonObject): void {
    this.#app.openGateway?.taskChanged(server, state);
  }

  elicited(params: JsonObject, members?: JsonObject): void {
    this.#app.openGateway?.clients.elicited(params, members);
  }

  notified(...[server, notification]: Parameters<UpstreamClients["notified"]>): void {
    const { openGateway, log } = this.#app;
    if (openGateway !== undefined) return openGateway.notified(server, notification);
    const name = quoted(notification.method, 100);
    log.debug(`A notification ${name} was not passed on: there is no client`, { server });
  }
}

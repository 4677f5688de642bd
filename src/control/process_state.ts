/**
 * The state of a running PML, as the page shows it.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { CallPath } from "../app/call_path.ts";
import type { CallContext } from "../calls/context.ts";
import { gatewaySettings } from "../config/gateway_settings.ts";
import type { ErrorCode, PmlError } from "../core/errors.ts";
import { listOf, objectOf, textOf, visibleLines, withoutUndefined } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { canShowForm } from "../gateway/interaction/capabilities.ts";
import type { ClientQuestion } from "../gateway/interaction/open_questions.ts";
import { readPlainText } from "../io/private_files.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import { serverLogPath } from "../servers/server_log.ts";
import type { CallRow, ClientRow, Problem, ProcessState, ServerRow, Waiting } from "./api.ts";
import type { ProcessEntry } from "./process_folder.ts";
import { offeredReplies } from "./replies.ts";

/** A PML in a process. It belongs to the owner or to an identity. */
export interface ShownApp {
  readonly app: App;
  readonly callPath: CallPath;
}

/** How much of the standard error of a server is shown, in characters. */
const STDERR_MAX = 2_000;
/** The memory of a server is shown as a multiple of this number of bytes. */
const MEMORY_STEP = 1 << 20;
/** The maximum number of clients, of questions and of running calls that are shown. */
const ROWS_MAX = 200;
/** The states of servers that need a sign-in or a key, by the code of their error. */
const MISSING_STATES: Partial<Record<ErrorCode, ServerRow["state"]>> = {
  LOGIN_REQUIRED: "sign-in",
  KEY_MISSING: "key",
};

/** Returns the state of a process. The first PML belongs to the owner. */
export async function readState(
  { id, pid, startedAt, command, version }: ProcessEntry,
  apps: readonly [ShownApp, ...ShownApp[]],
): Promise<ProcessState> {
  const [{ app, callPath }] = apps;
  const { workspace } = app.config();
  return {
    ...{ id, pid, startedAt, command, version },
    workspace,
    isPaused: app.config().pause !== undefined,
    clients: apps.flatMap((one) => listClients(one.app)).slice(0, ROWS_MAX),
    servers: await readServers(app, callPath),
    questions: listQuestions(id, apps[0]),
    running: apps.flatMap((one) => one.callPath.running.all().map((call) => rowOf(call, id, one)))
      .slice(-ROWS_MAX),
    problems: problemsOf(app),
  };
}

/** Returns the row of a call that runs. */
export function rowOf(call: CallContext, id: string, { app }: Pick<ShownApp, "app">): CallRow {
  const { server, tool } = splitToolId(call.id);
  return {
    id: call.callId,
    workspace: app.config().workspace,
    process: id,
    at: Math.round(performance.timeOrigin + (call.startedAt || performance.now())),
    server,
    tool,
    state: call.deadline?.isAsking === true ? "asking" : "running",
    ...withoutUndefined({
      client: clientName(call.clientInfo),
      identity: app.loaded().identity,
      parent: call.run,
    }),
  };
}

/** Returns the name of a client; undefined if the client did not send one. */
export function clientName(info: unknown): string | undefined {
  return textOf(objectOf(info).name).slice(0, STDERR_MAX) || undefined;
}

function listClients(app: App): readonly ClientRow[] {
  const { asksClient } = gatewaySettings(app.config());
  const connected = app.openGateway?.clients.connected ?? [];
  const rows = connected.map(({ info, peer, capabilities, since }) => {
    const { name, version } = objectOf(info ?? peer.getClientVersion());
    const isKnown = info !== undefined;
    return {
      name: textOf(name),
      ...withoutUndefined({
        version: textOf(version) || undefined,
        canAsk: isKnown ? asksClient && canShowForm(capabilities) : undefined,
        identity: app.loaded().identity,
      }),
      since,
    };
  });
  // A client of the stateless revision over HTTP has no session.
  const recent = app.clientNotes?.recent() ?? [];
  return [
    ...rows,
    ...recent.filter(({ name, version }) =>
      !rows.some((row) => row.name === name && (row.version ?? "") === version)
    ).map(({ name, version, asks, since }) => ({
      name,
      ...version !== "" && { version },
      canAsk: asksClient && asks,
      since,
    })),
  ];
}

/** Returns the servers of a PML, without starting any. */
export async function readServers(app: App, { machine }: CallPath): Promise<readonly ServerRow[]> {
  const rows = await Promise.all(
    app.servers.states().map((server) => serverRow(server, { app, machine })),
  );
  return [...rows, ...disabledRows(app)];
}

async function serverRow(
  { name, kind, why, tools, state: listState }: ServerState,
  { app, machine }: Pick<ShownApp, "app"> & Pick<CallPath, "machine">,
): Promise<ServerRow> {
  const running = await machine.runningOf(name);
  const processes = running.length;
  const memoryBytes = running.reduce((sum, each) => sum + each.rss(), 0);
  const code = app.servers.lists.entries.get(name)?.failures.get("tools")?.code;
  const isFailed = listState === "failed";
  const state = isFailed
    ? code && MISSING_STATES[code] || "failed"
    : processes > 0
    ? "running"
    : machine.starts.isAwaited(name)
    ? "starting"
    : "idle";
  return {
    name,
    kind,
    origin: originOf(app, name),
    state,
    ...withoutUndefined({
      problem: why,
      stderr: state === "failed" ? readStderr(app, name) : undefined,
      tools: listState === "ready" ? tools : undefined,
      memoryBytes: memoryBytes > 0 ? roundBytes(memoryBytes) : undefined,
    }),
    processes,
    actions: processes > 0 ? ["restart", "stop"] : isFailed ? ["restart"] : [],
  };
}

/** Rounds a number of bytes, so that small changes do not send a new state. */
function roundBytes(bytes: number): number {
  return Math.max(1, Math.round(bytes / MEMORY_STEP)) * MEMORY_STEP;
}

/** Returns where a server is defined. */
function originOf({ policy, directory }: App, name: string): string {
  const definition = policy.definitionOf(name);
  if (definition === undefined) return directory.get(name).origin.name;
  return policy.isShared(definition) ? ".pml.json" : "config.yaml";
}

function disabledRows(app: App): readonly ServerRow[] {
  const { file, parents, userConfig } = app.loaded();
  const names = [file, ...parents, userConfig].flatMap((each) => each?.disabled ?? []);
  return [...new Set(names)].map((name) => ({
    name,
    kind: "",
    origin: app.policy.fileThatDisables(name) ?? "",
    state: "disabled",
    actions: [],
  }));
}

/** Returns the end of the standard error of a server. */
function readStderr(app: App, name: string): string | undefined {
  try {
    const text = readPlainText(serverLogPath(app.config().home, name))?.trimEnd();
    return text === undefined ? undefined : visibleLines(text.slice(-STDERR_MAX), Infinity);
  } catch {
    return undefined; // `pml logs` reports a file that cannot be read
  }
}

function listQuestions(id: string, { app, callPath }: ShownApp): readonly Waiting[] {
  const openQuestions = app.openGateway?.questions?.listOpen() ?? [];
  return openQuestions.slice(-ROWS_MAX).map((question) =>
    waitingOf(question, id, { app, callPath })
  );
}

function waitingOf(
  { id, question, info, askedAt, expires }: ClientQuestion,
  processId: string,
  { app, callPath }: ShownApp,
): Waiting {
  const { subjects = [], effects } = callPath.approvals.openQuestion(question.handle) ?? {};
  const ids = [...new Set(subjects.map(({ tool }) => tool))].map((id) => splitToolId(id as ToolId));
  return {
    id,
    where: "client",
    process: processId,
    workspace: app.config().workspace,
    server: [...new Set(ids.map(({ server }) => server))].join(", "),
    tool: ids.map(({ tool }) => tool).join(", "),
    ...withoutUndefined({ client: clientName(info) }),
    text: question.text,
    askedAt,
    expires,
    replies: offeredReplies(question.answers, effects),
  };
}

function problemsOf(app: App): readonly Problem[] {
  const { problem, warnings } = app.config();
  return [
    ...problem === undefined ? [] : [problemOf(problem)],
    ...warnings.map((message) => ({ message })),
  ];
}

/** Returns an error as the page shows it. */
export function problemOf({ code, message, hint, detail }: PmlError): Problem {
  const { file, line } = objectOf(listOf(objectOf(detail).problems)[0]);
  return {
    code,
    message,
    ...withoutUndefined({
      hint,
      file: typeof file === "string" ? file : undefined,
      line: typeof line === "number" ? line : undefined,
    }),
  };
}

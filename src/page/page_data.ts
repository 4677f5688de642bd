/**
 * The state that the page shows: the files of the PML home, joined with its running processes.
 *
 * @module
 */

import type {
  CallRow,
  PageEvent,
  PageState,
  ProcessState,
  ServerRow,
  Workspace,
} from "../control/api.ts";
import { ProcessClients, type ProcessClientsHost } from "../control/process_clients.ts";
import { messageOf } from "../core/errors.ts";
import { withoutUndefined } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { callAfter } from "../io/waiting.ts";
import type { PageActions } from "./actions.ts";
import { JournalCalls } from "./calls.ts";

/** How often files are read while a browser is connected, in milliseconds. */
const READ_MS = 500;
/** The shortest time between two states, in milliseconds. */
const STATE_GAP_MS = 200;
/** How long the facts about a workspace are kept, in milliseconds. */
const WORKSPACE_MS = 2_000;
/** The maximum numbers in a state: of calls, and of workspaces from the journal alone. */
const [CALLS_MAX, WORKSPACES_MAX] = [20, 10];

/** Receives the events of the page. */
export type PageEventListener = (event: PageEvent) => void;

/** Joins files and processes, and reports changes to the browsers that follow. */
export class PageData implements ProcessClientsHost, AsyncDisposable {
  /** The calls in the journal. */
  readonly calls: JournalCalls;
  /** The running processes. */
  readonly processes: ProcessClients;
  readonly #home: string;
  readonly #actions: PageActions;
  /** The workspace that the page was started in. */
  readonly #here: string;
  readonly #followers = new Set<PageEventListener>();
  readonly #workspaces = new Map<string, { readonly at: number; readonly value?: Workspace }>();
  #timer: Disposable | undefined;
  #lastSent = "";
  #building: Promise<PageState> | undefined;
  #isChanged = false;
  #isEnded = false;

  /** `here` is the workspace that is always shown. */
  constructor(home: string, actions: PageActions, here: string) {
    this.#home = home;
    this.#actions = actions;
    this.#here = here;
    this.calls = new JournalCalls(home);
    this.processes = new ProcessClients(home, this);
  }

  /** Finds the running processes, and follows them. */
  async start(): Promise<void> {
    await this.processes.start();
  }

  /** Returns the present state. */
  async state(): Promise<PageState> {
    const rows = await this.calls.read();
    await this.processes.readFolder();
    this.#send(rows);
    return await (this.#building ??= this.#buildState().finally(() => this.#building = undefined));
  }

  /** Passes events to `listener` until the result is disposed. The first event is the present state. */
  async follow(listener: PageEventListener): Promise<Disposable> {
    const state = await this.state();
    listener({ type: "state", state });
    this.#followers.add(listener);
    this.#schedule(READ_MS);
    return {
      [Symbol.dispose]: () => {
        this.#followers.delete(listener);
        if (this.#followers.size === 0) this.#stop();
      },
    };
  }

  /** Reports the state soon, because something changed. */
  sendSoon(): void {
    if (this.#followers.size === 0 || this.#isChanged) return;
    this.#isChanged = true;
    this.#schedule(STATE_GAP_MS);
  }

  /** Discards the facts about workspaces, which an action may have changed, and sends the state. */
  refresh(): void {
    this.#workspaces.clear();
    this.sendSoon();
  }

  onState(): void {
    this.sendSoon();
  }

  onHidden(): void {
    this.sendSoon();
  }

  onCall(call: CallRow): void {
    this.calls.noteClient(call);
    this.#send([call]);
  }

  onEnd(id: string): void {
    for (const take of this.#followers) take({ type: "ended", process: id });
    this.sendSoon();
  }

  /** Stops reading. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    this.#stop();
    this.#followers.clear();
    this.calls[Symbol.dispose]();
    await this.processes[Symbol.asyncDispose]();
  }

  #send(calls: readonly CallRow[]): void {
    for (const call of calls) for (const take of this.#followers) take({ type: "call", call });
  }

  #stop(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #schedule(ms: number): void {
    this.#stop();
    if (this.#isEnded || this.#followers.size === 0) return;
    this.#timer = callAfter(ms, () => void this.#update());
  }

  async #update(): Promise<void> {
    this.#isChanged = false;
    try {
      const state = await this.state();
      const shown = JSON.stringify({ ...state, now: 0 });
      if (shown !== this.#lastSent) {
        this.#lastSent = shown;
        for (const take of this.#followers) take({ type: "state", state });
      }
    } finally {
      if (!this.#isChanged) this.#schedule(READ_MS);
      else this.#schedule(STATE_GAP_MS);
    }
  }

  async #buildState(): Promise<PageState> {
    const { states, hidden } = this.processes;
    this.calls.processes = new Map(states.map(({ pid, id }) => [pid, id]));
    const waiting = [
      ...await this.#actions.waiting(),
      ...states.flatMap(({ questions }) => questions),
    ].sort((one, other) => one.askedAt - other.askedAt);
    const roots = new Set([
      ...[...states, ...waiting, ...hidden].map(({ workspace }) => workspace),
      this.#here,
      ...this.calls.workspaces.slice(-WORKSPACES_MAX),
    ]);
    const workspaces = await Promise.all([...roots].map((root) => this.#workspace(root)));
    const running = states.flatMap((one) => one.running);
    const runningIds = new Set(running.map(({ id }) => id));
    const { calls } = this.calls.list({ limit: CALLS_MAX });
    const journalProblem = this.calls.problem;
    return {
      version: VERSION,
      home: this.#home,
      now: Date.now(),
      waiting,
      processes: states,
      hidden,
      workspaces: workspaces.filter((one) => one !== undefined)
        .map((one) => withProcesses(one, states)),
      calls: [...running, ...calls.filter(({ id }) => !runningIds.has(id))]
        .sort((one, other) => other.at - one.at).slice(0, CALLS_MAX),
      ...journalProblem !== undefined && { journalProblem },
    };
  }

  async #workspace(root: string): Promise<Workspace | undefined> {
    const cached = this.#workspaces.get(root);
    if (cached !== undefined && Date.now() - cached.at < WORKSPACE_MS) return cached.value;
    const value = await this.#actions.workspace(root).catch((error): Workspace => ({
      ...{ root, name: root, trust: "", isPaused: false, servers: [] },
      problems: [{ message: messageOf(error) }],
    }));
    this.#workspaces.set(root, { at: Date.now(), ...value !== undefined && { value } });
    return value;
  }
}

/** Returns a workspace with the server states of its running processes. */
function withProcesses(workspace: Workspace, states: readonly ProcessState[]): Workspace {
  const live = states.filter((state) => state.workspace === workspace.root);
  const rows = live.flatMap(({ servers }) => servers);
  const names = new Set([...workspace.servers, ...rows].map(({ name }) => name));
  const servers = [...names].map((name) =>
    joinRows([...workspace.servers, ...rows].filter((row) => row.name === name))
  );
  const { next, ...rest } = workspace;
  // `nextStep()` may not find the entry of a client, because of its file or form. A client that has
  // connected proves that the step is done.
  const isDone = next?.command === "pml init" && live.some(({ clients }) => clients.length > 0);
  return { ...rest, servers, ...next !== undefined && !isDone && { next } };
}

/** The states of servers, from the least to the most informative one. */
const ORDER: readonly ServerRow["state"][] = [
  "idle",
  "disabled",
  "key",
  "sign-in",
  "failed",
  "starting",
  "running",
];

/** Joins the rows of one server. The most informative state counts, and the actions are combined. */
function joinRows(rows: readonly ServerRow[]): ServerRow {
  const sorted = rows.toSorted((one, other) =>
    ORDER.indexOf(one.state) - ORDER.indexOf(other.state)
  );
  const sum = (amounts: readonly (number | undefined)[]) => {
    const numbers = amounts.filter((amount) => amount !== undefined);
    return numbers.length === 0 ? undefined : numbers.reduce((all, amount) => all + amount, 0);
  };
  const row: ServerRow = Object.assign({}, ...sorted);
  const { problem: _, ...withoutProblem } = row;
  return {
    ...row.state === "running" ? withoutProblem : row,
    ...withoutUndefined({
      processes: sum(rows.map(({ processes }) => processes)),
      memoryBytes: sum(rows.map(({ memoryBytes }) => memoryBytes)),
    }),
    actions: [...new Set(rows.flatMap(({ actions }) => actions))],
  };
}

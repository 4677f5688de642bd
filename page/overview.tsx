/**
 * The first view: the waiting questions, the workspaces with their processes and clients, the servers,
 * and the last calls.
 *
 * @module
 */

import type { VNode } from "preact";
import type {
  CallRow,
  ClientRow,
  HiddenProcess,
  ProcessState,
  ServerRow,
  Workspace,
} from "../src/control/api.ts";
import { CallTable } from "./call_table.tsx";
import { ActionButton, EmptyNote, MoreButton, ProblemNote, State, useStillRows } from "./parts.tsx";
import { PauseButton } from "./pause.tsx";
import { addressOf, endedProcesses, shownWorkspaces, state } from "./store.ts";
import { Table } from "./table.tsx";
import { counted, External, plain, size, Time } from "./text.tsx";
import { WaitingSection } from "./waiting.tsx";

const LAST_CALLS = 20;

/** Shows the first view. */
export function Overview(): VNode {
  const pageState = state.value;
  if (pageState === undefined) return <p class="calm">Connecting…</p>;
  const shown = shownWorkspaces.value;
  const roots = new Set(shown.map(({ root }) => root));
  const calls = pageState.calls.filter(({ workspace }) => roots.has(workspace)).slice(
    0,
    LAST_CALLS,
  );
  return (
    <>
      <div class="first">
        <WaitingSection />
        <section class="workspaces" aria-labelledby="workspaces">
          <h2 id="workspaces">Workspaces</h2>
          {shown.length === 0
            ? <NoWorkspace />
            : shown.map((one) => <WorkspaceCard key={one.root} workspace={one} />)}
        </section>
        <section class="servers-part" aria-labelledby="servers">
          <h2 id="servers">Servers</h2>
          {shown.map((one) => <Servers key={one.root} workspace={one} />)}
          {shown.length === 0 && <p class="calm">Servers appear with their workspace.</p>}
        </section>
      </div>
      <LastCalls calls={calls} problem={pageState.journalProblem} />
    </>
  );
}

function LastCalls(
  { calls, problem }: {
    readonly calls: readonly CallRow[];
    readonly problem: string | undefined;
  },
): VNode {
  const still = useStillRows(calls, { key: ({ id }) => id });
  return (
    <section aria-labelledby="calls" {...still.hold}>
      <header class="title">
        <h2 id="calls">Last calls</h2>
        <MoreButton more={still.more} word="call" show={still.show} />
      </header>
      {problem !== undefined && (
        <ProblemNote problem={{ message: `The journal cannot be read: ${problem}` }} />
      )}
      {calls.length === 0 && problem === undefined && (
        <EmptyNote>
          <p>No calls yet.</p>
          <p>
            <a href={addressOf("tools")}>Try a tool</a>, or let your client call one.
          </p>
        </EmptyNote>
      )}
      {calls.length > 0 && <CallTable calls={still.rows} label="Last calls" />}
      {calls.length > 0 && (
        <p>
          <a href={addressOf("activity")}>All calls</a>
        </p>
      )}
    </section>
  );
}

function NoWorkspace(): VNode {
  return (
    <EmptyNote>
      <p>No client uses PML yet.</p>
      <p>
        Run <code>pml init</code>{" "}
        in the folder of your project. It adds PML to your clients, and this page shows them as soon
        as one starts PML.
      </p>
    </EmptyNote>
  );
}

function WorkspaceCard({ workspace }: { readonly workspace: Workspace }): VNode {
  const { root, name, trust, problems, isPaused, next } = workspace;
  const processes = state.value?.processes.filter((one) => one.workspace === root) ?? [];
  const hidden = state.value?.hidden.filter((one) => one.workspace === root) ?? [];
  return (
    <article class="card" aria-label={`Workspace ${plain(name)}`}>
      <header>
        <h3>
          <External text={name} />
        </h3>
        <PauseButton workspace={workspace} />
      </header>
      <p class="facts">
        <span>
          <External text={root} />
        </span>
        <span>
          <External text={trust} />
        </span>
      </p>
      {isPaused && (
        <p class="warning">
          <strong>Paused.</strong> PML refuses every new call of this workspace.
        </p>
      )}
      {problems.map((problem, at) => <ProblemNote key={at} problem={problem} />)}
      {processes.map((process) => <Process key={process.id} process={process} />)}
      {hidden.map((process) => <HiddenProcessNote key={process.id} process={process} />)}
      {processes.length + hidden.length === 0 && (
        <p class="calm">No PML runs here now. Your client starts it.</p>
      )}
      {next !== undefined && (
        <p class="next">
          Next:{" "}
          <code>
            <External text={next.command} />
          </code>{" "}
          <External text={next.text} />
        </p>
      )}
    </article>
  );
}

function Process({ process }: { readonly process: ProcessState }): VNode {
  const { command, pid, version, startedAt, clients, problems, running } = process;
  return (
    <div class="process">
      <p class="facts">
        <span>
          <strong>pml {command}</strong>
        </span>
        <span>process {pid}</span>
        <span>
          <External text={version} />
        </span>
        <span>
          since <Time at={startedAt} />
        </span>
        {running.length > 0 && <span>{counted(running.length, "call")} now</span>}
      </p>
      {problems.map((problem, at) => <ProblemNote key={at} problem={problem} />)}
      {clients.length === 0 ? <p class="calm">No client is connected.</p> : (
        <ul class="clients">
          {clients.map((client, at) => (
            <li key={at}>
              <Client client={client} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Client({ client }: { readonly client: ClientRow }): VNode {
  const { name, version, identity, canAsk } = client;
  return (
    <>
      <External text={name} /> {version !== undefined && (
        <small>
          <External text={version} />
        </small>
      )} {identity !== undefined && (
        <span class="calm">
          as <External text={identity} />
        </span>
      )}
      <span class="asks">
        {canAsk === undefined
          ? "not known whether it can ask you"
          : canAsk
          ? "✓ asks you itself"
          : "– cannot ask you: its questions wait here"}
      </span>
    </>
  );
}

function HiddenProcessNote({ process }: { readonly process: HiddenProcess }): VNode {
  const { command, pid, reason } = process;
  return (
    <div class="process">
      <p class="facts">
        <span>
          <strong>
            pml <External text={command} />
          </strong>
        </span>
        <span>process {pid}</span>
        <span>
          running, cannot be shown: <External text={reason} />
        </span>
      </p>
    </div>
  );
}

function Servers({ workspace }: { readonly workspace: Workspace }): VNode {
  const { name, root, servers } = workspace;
  if (servers.length === 0) {
    return (
      <EmptyNote>
        <p>
          <External text={name} /> has no servers.
        </p>
        <p>
          <a href={addressOf("servers", { add: root })}>Import the servers of a client</a>, or add
          one.
        </p>
      </EmptyNote>
    );
  }
  const isOnly = shownWorkspaces.value.length === 1;
  const columns = [
    { name: "Server" },
    { name: "State" },
    { name: "Tools", isNumber: true },
    { name: "Memory", isNumber: true },
  ];
  return (
    <Table
      label={`Servers of ${plain(name)}`}
      {...!isOnly && { caption: <External text={name} /> }}
      columns={columns}
      rows={servers.map((server) => ({
        key: server.name,
        cells: [
          <a key="name" href={addressOf("servers", { workspace: root, server: server.name })}>
            <External text={server.name} />
          </a>,
          <ServerHealth key="state" server={server} />,
          server.tools,
          server.memoryBytes === undefined ? undefined : size(server.memoryBytes),
        ],
      }))}
    />
  );
}

function ServerHealth({ server }: { readonly server: ServerRow }): VNode {
  const { state, problem } = server;
  return (
    <>
      <State of={state} />
      {problem !== undefined && (
        <div class="reason">
          <External text={problem} />
        </div>
      )}
    </>
  );
}

/** Shows the processes that ended a short time ago. */
export function EndedBanner(): VNode | null {
  if (endedProcesses.value.length === 0) return null;
  return (
    <div class="banner" role="status">
      <p>
        {endedProcesses.value.map(({ name }, at) => (
          <span key={at}>
            <External text={name} /> has ended.{" "}
          </span>
        ))}
        Its actions are off. Your client starts PML again when it needs it.
      </p>
      <ActionButton action={() => Promise.resolve(endedProcesses.value = [])}>Close</ActionButton>
    </div>
  );
}

/**
 * Adds servers: by an address or a package, or from the file of a client. The user sees each change as
 * a plan before PML makes it, with the same text as `pml add` and `pml import`.
 *
 * @module
 */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { Done, Plan, PlanTool, Workspace } from "../src/control/api.ts";
import { Choice, Entry } from "./entry.tsx";
import { read, sendAction } from "./http.ts";
import { ActionButton, useLoaded } from "./parts.tsx";
import { announce, announceError, isConnected } from "./store.ts";
import { Table } from "./table.tsx";
import { Block, counted, External, plain } from "./text.tsx";

/** A client whose servers can be imported. */
interface ClientFile {
  readonly client: string;
  readonly title: string;
  readonly servers: number;
}

/** Shows the forms of a workspace. */
export function AddForm(
  { workspace, isOpen: isFirst }: { readonly workspace: Workspace; readonly isOpen: boolean },
): VNode {
  const { root, name } = workspace;
  const [plan, setPlan] = useState<Plan>();
  const hasNone = workspace.servers.length === 0;
  return (
    <details class="adding" open={isFirst || hasNone || undefined}>
      <summary>
        Add servers to <External text={name} />
      </summary>
      {plan === undefined
        ? (
          <div class="pair">
            <SourceForm root={root} onPlan={setPlan} />
            <ImportForm root={root} onPlan={setPlan} />
          </div>
        )
        : <PlanForm key={plan.id} plan={plan} onEnd={setPlan} />}
    </details>
  );
}

function SourceForm(
  { root, onPlan }: { readonly root: string; readonly onPlan: (plan: Plan) => void },
): VNode {
  const [source, setSource] = useState("");
  const [name, setName] = useState("");
  const send = async () => {
    const body = { workspace: root, source, ...name !== "" && { name } };
    onPlan(await sendAction<Plan>("/api/add/plan", body));
  };
  return (
    <form class="card" onSubmit={submitHandler(send)}>
      <h3>By address or package</h3>
      <Entry
        name="source"
        value={source}
        placeholder="https://mcp.example.com/mcp"
        onValue={setSource}
      >
        Address, package or command
      </Entry>
      <Entry name="name" value={name} onValue={setName}>Name (optional)</Entry>
      <ActionButton action={send} kind="main" disabled={source.trim() === ""}>
        Show the plan
      </ActionButton>
    </form>
  );
}

function ImportForm(
  { root, onPlan }: { readonly root: string; readonly onPlan: (plan: Plan) => void },
): VNode {
  const [client, setClient] = useState("");
  const [clients] = useLoaded(
    root,
    () => read<readonly ClientFile[]>("/api/clients", { workspace: root }),
  );
  const found = clients.kind === "value" ? clients.value : [];
  const send = async () => {
    onPlan(await sendAction<Plan>("/api/import/plan", { workspace: root, client }));
  };
  return (
    <form class="card" onSubmit={submitHandler(send)}>
      <h3>From a client</h3>
      {found.length > 0
        ? (
          <Choice
            name="client"
            value={client}
            onValue={setClient}
            options={[
              ["", "Choose one"],
              ...found.map((one) =>
                [one.client, `${plain(one.title)} (${counted(one.servers, "server")})`] as const
              ),
            ]}
          >
            Client
          </Choice>
        )
        : (
          <Entry name="client" value={client} placeholder="claude-code" onValue={setClient}>
            Name of the client
          </Entry>
        )}
      {clients.kind === "value" && found.length === 0 && (
        <p class="calm">No client with servers was found on this machine.</p>
      )}
      <ActionButton action={send} kind="main" disabled={client === ""}>Show the plan</ActionButton>
    </form>
  );
}

function submitHandler(send: () => Promise<void>): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    if (isConnected.peek()) send().catch(announceError);
  };
}

function PlanForm(
  { plan, onEnd }: { readonly plan: Plan; readonly onEnd: (next?: Plan) => void },
): VNode {
  const { id, title, text, word: wanted, tools } = plan;
  const [word, setWord] = useState("");
  const [decisions, setDecisions] = useState<Decisions>(
    new Map(tools.map((tool) => [tool, tool.proposed])),
  );
  const send = async () => {
    const chosen = tools.map((tool) => ({
      server: tool.server,
      tool: tool.tool,
      decision: decisions.get(tool) ?? tool.proposed,
    }));
    const result = await sendAction<Done>("/api/plan/apply", {
      plan: id,
      ...tools.length > 0 && { tools: chosen },
      ...wanted !== undefined && { word },
    });
    announce(result.text, { isError: !result.done, undo: result.undo });
    if (result.done) onEnd(result.next);
  };
  return (
    <div class="card">
      <h3>
        <External text={title} />
      </h3>
      <Block text={text} label="The plan" />
      {tools.length > 0 && (
        <PlanTools tools={tools} decisions={decisions} onDecisions={setDecisions} />
      )}
      {wanted !== undefined && (
        <Entry name="word" value={word} onValue={setWord}>
          Type <code>{plain(wanted)}</code> to make this change
        </Entry>
      )}
      <p class="actions">
        <ActionButton action={send} kind="main" disabled={wanted !== undefined && word !== wanted}>
          Make this change
        </ActionButton>
        <button type="button" class="quiet" onClick={() => onEnd()}>Cancel</button>
      </p>
    </div>
  );
}

type Decisions = ReadonlyMap<PlanTool, PlanTool["proposed"]>;

const CHOICES: readonly PlanTool["proposed"][] = ["allow", "ask", "deny"];

function PlanTools(
  { tools, decisions, onDecisions }: {
    readonly tools: readonly PlanTool[];
    readonly decisions: Decisions;
    readonly onDecisions: (decisions: Decisions) => void;
  },
): VNode {
  const rows = tools.map((tool) => {
    const id = `${tool.server}:${tool.tool}`;
    const chosen = decisions.get(tool) ?? tool.proposed;
    const choose = (text: string) => {
      const decision = CHOICES.find((one) => one === text) ?? tool.proposed;
      onDecisions(new Map(decisions).set(tool, decision));
    };
    const heading = (
      <>
        <External text={id} />
        <div class="reason">
          <External text={tool.description} />
        </div>
      </>
    );
    const choice = (
      <Choice name={id} value={chosen} onValue={choose} options={CHOICES.map((one) => [one, one])}>
        <span class="unseen">Rule of {plain(id)}</span>
      </Choice>
    );
    return { key: id, cells: [heading, choice, <External key="reason" text={tool.reason} />] };
  });
  const columns = [{ name: "Tool" }, { name: "Rule" }, { name: "Reason" }];
  return <Table label="Tools, and the rule that each gets" columns={columns} rows={rows} />;
}

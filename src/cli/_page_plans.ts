/**
 * The plans of the page: changes that the user sees before PML makes them. They add or import servers,
 * or decide about their tools.
 *
 * @module
 */

import type { Done, Plan, PlanTool } from "../control/api.ts";
import type { ImportableServer } from "../config/client_servers.ts";
import { counted } from "../core/amounts.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { serverSlug, splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import type { RuleList } from "../policy/rule_lists.ts";
import type { ToolDecision } from "../page/actions.ts";
import { PageFailure } from "../page/failure.ts";
import { toAddition } from "./_add.ts";
import { type CommandContext, recordAction } from "./_command_context.ts";
import { importText, planImport, writeImport } from "./_import.ts";
import { doubleOf } from "./_import_doubles.ts";
import { removalTexts, removeRules } from "./_definition_edit.ts";
import { findTarget } from "./_undoable_edits.ts";
import type { WorkspaceApps } from "./_workspace_apps.ts";
import { ruleRemovals } from "./_rules.ts";
import { isSameTable, readTable, type ServerTable, tableLines } from "./_server_table.ts";
import { acceptTable, relistTable, startServers } from "./_table_question.ts";

/** A plan that waits for the decision of the user. */
interface OpenPlan {
  readonly plan: Plan;
  readonly expires: number;
  /** Keeps the workspace of the plan open until it is disposed. */
  readonly use: Disposable;
  apply(tools: readonly ToolDecision[]): Promise<Done>;
}

/** How long a plan waits, in milliseconds, and the maximum number of waiting plans. */
const [PLAN_MS, PLANS_MAX] = [600_000, 20];
const PACKAGE = /^(?:npm:)?(@?[\w./~-]+(?:@[\w.^~-]+)?)$/;

/** The plans that wait for the user. Each can be applied once. */
export class PagePlans {
  readonly #apps: Pick<WorkspaceApps, "hold">;
  readonly #open = new Map<string, OpenPlan>();

  /** `apps` keeps the workspaces of plans open. */
  constructor(apps: Pick<WorkspaceApps, "hold">) {
    this.#apps = apps;
  }

  /** Plans to add a server, by its address, its npm package or its command. */
  async add(
    context: CommandContext,
    { source, name }: { readonly source: string; readonly name?: string },
  ): Promise<Plan> {
    const addition = await toAddition(context, parseSource(source.trim(), name?.trim()));
    const { edit, workspace, server } = addition;
    // The page cannot ask whether PML may store a key, as `pml add` does on a terminal.
    // guard: page-add-key
    if (server.pick.values.size > 0) {
      throw new PmlError(
        "BAD_ARGUMENTS",
        `Cannot add ${quoted(addition.name)}: the text contains a key`,
        {
          hint: "Use `pml add` on a terminal, which stores the key, or write ${NAME} in its place",
        },
      );
    }
    const endingRules = await edit.prepareRemovals();
    return this.#store(context, {
      title: `Add ${addition.name} and start it`,
      text: [...addition.facts, ...endingRules].join("\n"),
      tools: [],
    }, async () => {
      await edit.write();
      await recordAction(context, "server added", { server: addition.name, channel: "page" });
      return await this.#startServers(context, {
        names: [addition.name],
        workspace,
        done: "Added",
      });
    });
  }

  /** Plans to import the servers of a client. */
  async import(context: CommandContext, client: string): Promise<Plan> {
    const target = await findTarget(context.app, false);
    const plan = await planImport(context, { from: client, target });
    const names = plan.taken.map(({ name }) => name);
    if (names.length === 0) {
      throw new PageFailure(422, "NOTHING_TO_IMPORT", {
        message: importText(plan, context) || `${client} has no server to import`,
      });
    }
    const removals = await Promise.all(names.map((name) => ruleRemovals(context.app, name)));
    return this.#store(context, {
      title: `Import ${counted(names.length, "server")} of ${client} and start them`,
      text: [
        importText(plan, context),
        ...importNotes(plan.taken, client),
        ...await removalTexts(context.app, removals.flat()),
      ].join("\n"),
      tools: [],
    }, async () => {
      const { ended } = await removeRules(context.app, names);
      const choice = { taken: plan.taken, denied: [], doubles: [] };
      // The file may have changed since the plan was shown.
      const freshTarget = await findTarget(context.app, false);
      const lines = await writeImport(context, choice, {
        target: freshTarget,
        workspace: false,
        ended,
      });
      await recordAction(context, "servers imported", { servers: names, channel: "page" });
      await context.app.policy.reload();
      const keys = plan.taken.flatMap(({ variables }) => variables)
        .filter(({ isSet }) => !isSet).map(({ name }) => `\`pml key set ${name}\``);
      const more = keys.length === 0 ? [] : [`Set the keys: ${[...new Set(keys)].join(", ")}`];
      const done = [...lines, ...more].join(". ");
      const started = await this.#startServers(context, { names, workspace: false, done });
      return { ...started, undo: "pml import --undo" };
    });
  }

  /** Applies a plan. */
  async apply(
    { plan: id, tools = [] }: {
      readonly plan: string;
      readonly tools?: readonly ToolDecision[];
    },
  ): Promise<Done> {
    const openPlan = this.#open.get(id);
    // guard: page-plan
    if (openPlan === undefined || openPlan.expires <= Date.now()) {
      return { done: false, text: "This was already done, or has expired. Begin again" };
    }
    this.#open.delete(id);
    using _ = openPlan.use;
    return await openPlan.apply(tools);
  }

  #store(context: CommandContext, plan: Omit<Plan, "id">, apply: OpenPlan["apply"]): Plan {
    const id = crypto.randomUUID();
    const planWithId = { ...plan, id };
    this.#endOldPlans();
    const use = this.#apps.hold(context);
    this.#open.set(id, { plan: planWithId, expires: Date.now() + PLAN_MS, use, apply });
    return planWithId;
  }

  /** Ends the plans that have expired, and the oldest one if there are too many. */
  #endOldPlans(): void {
    let excess = this.#open.size - PLANS_MAX + 1;
    for (const [id, { expires, use }] of this.#open) {
      if (expires > Date.now() && excess <= 0) continue;
      excess--;
      this.#open.delete(id);
      use[Symbol.dispose]();
    }
  }

  /** Starts new servers, and plans the decisions about their tools. */
  async #startServers(
    context: CommandContext,
    { names, workspace, done }: {
      readonly names: readonly string[];
      readonly workspace: boolean;
      readonly done: string;
    },
  ): Promise<Done> {
    const slugs = names.map(serverSlug);
    await startServers(context, slugs);
    const table = await readTable(context.app, slugs);
    const failed = context.app.servers.states()
      .filter(({ name, state }) => slugs.includes(name) && state !== "ready")
      .map(({ name, why }) => `${name} does not work yet: ${why ?? "it did not start"}`);
    const text = [done, ...failed].join(". ");
    if (table.rows.length === 0) return { done: true, text };
    return {
      done: true,
      text,
      next: this.#planTable(context, { table, servers: slugs, workspace }),
    };
  }

  #planTable(
    context: CommandContext,
    { table, servers, workspace }: {
      readonly table: ServerTable;
      readonly servers: readonly string[];
      readonly workspace: boolean;
    },
  ): Plan {
    const plan = {
      title: `Decide about the tools of ${servers.join(", ")}`,
      text: tableLines(table, new Map()).join("\n"),
      tools: table.rows.map(planTool),
    };
    return this.#store(context, plan, async (tools) => {
      const newTable = await relistTable(context, servers);
      // guard: page-table
      if (!isSameTable(table, newTable)) {
        const next = this.#planTable(context, { table: newTable, servers, workspace });
        return { done: false, text: "The tools have changed since the table was shown", next };
      }
      const chosen = chosenDecisions(table, tools);
      const result = await acceptTable(context, table, { chosen, read: new Set(), workspace });
      return {
        done: true,
        text: result.kind === "accepted" ? result.written : "No rule was written",
      };
    });
  }
}

/** Returns lines about the questions that only `pml import` on a terminal asks. */
function importNotes(taken: readonly ImportableServer[], client: string): readonly string[] {
  const hasDoubles = taken.some((server) => doubleOf(server) !== undefined);
  const hasKeys = taken.some(({ variables }) =>
    variables.some(({ isSet, where }) => !isSet && where !== undefined)
  );
  const terminal = `\`pml import ${client}\` on a terminal`;
  return [
    ...hasDoubles
      ? [`Servers that do the same as one of PML are added next to it: ${terminal} asks about them`]
      : [],
    ...hasKeys ? [`The page copies no keys: ${terminal} offers to store them`] : [],
  ];
}

/**
 * Returns the decisions of the user. Leaves out an allow for a tool whose texts are marked as unusual,
 * unless the rules allow the tool already.
 */
function chosenDecisions(
  { rows }: ServerTable,
  decisions: readonly ToolDecision[],
): ReadonlyMap<ToolId, RuleList> {
  const chosen = new Map<ToolId, RuleList>();
  for (const { server, tool, decision } of decisions) {
    const row = rows.find(({ id }) => id === toolId(server, tool));
    if (row === undefined) continue;
    // guard: page-table-unread
    if (decision === "allow" && row.isMarked && row.present !== "allow") continue;
    chosen.set(row.id, decision);
  }
  return chosen;
}

function planTool(row: ServerTable["rows"][number]): PlanTool {
  const { id, description, proposed, effect, note } = row;
  return {
    ...splitToolId(id),
    description,
    proposed,
    reason: [effect, note].filter(Boolean).join("; "),
  };
}

/** Returns the options of `pml add` for an address, a package or a command. */
function parseSource(source: string, name = ""): Parameters<typeof toAddition>[1] {
  const input = { words: [] };
  const failure = (why: string) =>
    new PmlError("BAD_ARGUMENTS", `Cannot add ${quoted(source, 200)}: ${why}`, {
      hint: "Give an address, npm:PACKAGE, or a command with a name for the server",
    });
  if (/^https?:\/\//.test(source)) {
    const title = name || serverSlug(new URL(source).hostname.split(".").at(-2) ?? "server");
    return { title, input: { ...input, url: source } };
  }
  const [, spec = ""] = PACKAGE.exec(source) ?? [];
  const isPackage = source.startsWith("npm:") || source.startsWith("@");
  if (isPackage && spec !== "") return { title: name, program: `npm:${spec}`, input };
  const command = source.split(/\s+/);
  if (name === "") throw failure("a command needs a name for its server");
  // The command is split at blanks, but a shell treats these characters in another way.
  if (/["'`$\\|&;<>]/.test(source)) throw failure("it has characters that a shell reads");
  return { title: name, program: command[0] ?? "", command, input };
}

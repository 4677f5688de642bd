/**
 * Implements the actions of the page with the functions of the commands.
 *
 * @module
 */

import { basename } from "node:path";
import type { App } from "../app/app.ts";
import type { ServerRow, Workspace } from "../control/api.ts";
import { messageOf } from "../core/errors.ts";
import { problemOf, readServers } from "../control/process_state.ts";
import type { PageActions } from "../page/actions.ts";
import { type CommandContext, recordAction } from "./_command_context.ts";
import type { WorkspaceApps } from "./_workspace_apps.ts";
import { beginPause, endPause } from "./_pause.ts";
import { changeServer, removePageRule } from "./_page_changes.ts";
import { PagePlans } from "./_page_plans.ts";
import { pageCall } from "./_page_call.ts";
import {
  pageClients,
  pageContext,
  pageRules,
  pageSearch,
  pageSettings,
  pageTool,
  pageTools,
} from "./_page_reads.ts";
import { answerWaiting, waitingRows } from "./_page_waiting.ts";
import { nextStep } from "./_status.ts";
import { trustState } from "./_trust.ts";

/** Acts on the workspaces of a PML home. */
export class CliPageActions implements PageActions {
  readonly #apps: WorkspaceApps;
  readonly #plans: PagePlans;

  /** `apps` opens the PMLs of workspaces. */
  constructor(apps: WorkspaceApps) {
    this.#apps = apps;
    this.#plans = new PagePlans(apps);
  }

  readonly waiting: PageActions["waiting"] = async () => await waitingRows(this.#apps);

  readonly workspace: PageActions["workspace"] = async (root) => {
    if (!this.#apps.has(root)) return undefined;
    return await this.#apps.use(root, (context) => readWorkspace(root, context));
  };

  readonly answer: PageActions["answer"] = async (request) =>
    await answerWaiting(this.#apps, request);

  readonly server: PageActions["server"] = async (action) =>
    await this.#apps.use(action.workspace, (context) => changeServer(context, action, this.#apps));

  readonly planAdd: PageActions["planAdd"] = async ({ workspace, ...source }) =>
    await this.#apps.use(workspace, (context) => this.#plans.add(context, source));

  readonly planImport: PageActions["planImport"] = async ({ workspace, client }) =>
    await this.#apps.use(workspace, (context) => this.#plans.import(context, client));

  readonly apply: PageActions["apply"] = async (request) => await this.#plans.apply(request);

  readonly removeRule: PageActions["removeRule"] = async ({ workspace, ...rule }) =>
    await this.#apps.use(workspace, (context) => removePageRule(context, rule));

  readonly search: PageActions["search"] = async (workspace, query) =>
    await this.#apps.use(workspace, (context) => pageSearch(context, query));

  readonly tools: PageActions["tools"] = async (workspace, server) =>
    await this.#apps.use(workspace, (context) => pageTools(context, server));

  readonly tool: PageActions["tool"] = async (workspace, id) =>
    await this.#apps.use(workspace, (context) => pageTool(context, id));

  readonly call: PageActions["call"] = async ({ workspace, ...call }) =>
    await this.#apps.use(workspace, (context) => pageCall(context, call));

  readonly pause: PageActions["pause"] = async (workspace, isPaused) =>
    await this.#apps.use(workspace, async (context) => {
      const text = isPaused
        ? (await beginPause(context, "page")).text
        : await endPause(context, "page");
      await context.app.policy.reload();
      return { done: true, text, ...isPaused && { undo: "pml resume" } };
    });

  readonly context: PageActions["context"] = async (workspace) =>
    await this.#apps.use(workspace, pageContext);

  readonly rules: PageActions["rules"] = async (workspace) =>
    await this.#apps.use(workspace, pageRules);

  readonly settings: PageActions["settings"] = async (workspace) =>
    await this.#apps.use(workspace, pageSettings);

  readonly clients: PageActions["clients"] = async (workspace) =>
    await this.#apps.use(workspace, pageClients);

  readonly record: PageActions["record"] = (event, about) => {
    const { here } = this.#apps;
    recordAction({ app: here }, event, about).catch((error) => here.log.warn(messageOf(error)));
  };
}

/** Returns a workspace as the page shows it. Starts nothing. */
async function readWorkspace(root: string, { app }: CommandContext): Promise<Workspace> {
  const { problem, warnings } = app.config();
  const trust = problem === undefined ? await trustState(app) : undefined;
  const next = await nextStep(app);
  return {
    root,
    name: basename(root) || root,
    trust: problem !== undefined ? "not read" : trust?.text ?? "no workspace file",
    isPaused: app.config().pause !== undefined,
    problems: [
      ...problem === undefined ? [] : [problemOf(problem)],
      ...warnings.map((message) => ({ message })),
    ],
    servers: problem === undefined ? await serverRows(app) : [],
    ...next !== undefined && { next },
  };
}

/** Returns the servers of a workspace, with the actions of commands. Starts nothing. */
async function serverRows(app: App): Promise<readonly ServerRow[]> {
  const rows = await readServers(app, await app.callPath());
  return rows.map((row) => ({ ...row, actions: actionsOf(app, row) }));
}

function actionsOf(app: App, { name, state }: ServerRow): ServerRow["actions"] {
  if (state === "disabled") return ["enable"];
  if (app.policy.definitionOf(name) === undefined) return [];
  return ["disable", "remove", ...state === "sign-in" ? ["sign-in"] as const : []];
}

/**
 * The actions of the page. The command line implements them with the functions of its commands.
 *
 * @module
 */

import type {
  AnswerRequest,
  CallAnswer,
  ContextCosts,
  Done,
  Plan,
  RuleRow,
  SearchAnswer,
  ServerAction,
  Settings,
  ToolPage,
  ToolRow,
  Waiting,
  Workspace,
} from "../control/api.ts";
import type { JsonObject } from "../core/json.ts";

/** The decision of the user about a tool of a plan. */
export interface ToolDecision {
  readonly server: string;
  readonly tool: string;
  readonly decision: "allow" | "ask" | "deny";
}

/** A client of this machine that starts servers itself. */
export interface FoundClient {
  readonly client: string;
  readonly title: string;
  readonly servers: number;
}

/** The reads and changes of the page in a PML home. */
export interface PageActions {
  /** Returns the calls that wait in the PML home, of all workspaces, the oldest first. */
  waiting(): Promise<readonly Waiting[]>;
  /** Returns a workspace; undefined if its folder is gone. Never throws. */
  workspace(root: string): Promise<Workspace | undefined>;
  /** Answers a call that waits in the PML home. */
  answer(request: AnswerRequest): Promise<Done>;
  /** Changes a server of a workspace. */
  server(action: ServerAction): Promise<Done>;
  /** Shows how a server would be added. */
  planAdd(request: {
    readonly workspace: string;
    readonly source: string;
    readonly name?: string;
  }): Promise<Plan>;
  /** Shows how the servers of a client would be imported. */
  planImport(request: { readonly workspace: string; readonly client: string }): Promise<Plan>;
  /** Makes the change of a plan. `tools` are the user's decisions about the tools of the plan. */
  apply(request: {
    readonly plan: string;
    readonly tools?: readonly ToolDecision[];
  }): Promise<Done>;
  /** Returns the clients of this machine whose servers can be imported. */
  clients(workspace: string): Promise<readonly FoundClient[]>;
  /** Searches for tools as the model does. */
  search(workspace: string, query: string): Promise<SearchAnswer>;
  /** Returns the tools of a server, or of all servers. */
  tools(workspace: string, server?: string): Promise<readonly ToolRow[]>;
  /** Returns a tool with all facts about it. */
  tool(workspace: string, id: string): Promise<ToolPage>;
  /** Calls a tool, and waits for the answer to a question about it. */
  call(request: {
    readonly workspace: string;
    readonly tool: string;
    readonly arguments: JsonObject;
    readonly signal: AbortSignal;
  }): Promise<CallAnswer>;
  /** Pauses a workspace, so that every new call is refused, or ends the pause. */
  pause(workspace: string, isPaused: boolean): Promise<Done>;
  /** Returns the tokens of the lists of a workspace. */
  context(workspace: string): Promise<ContextCosts>;
  /** Returns the rules and the session answers of a workspace. */
  rules(workspace: string): Promise<readonly RuleRow[]>;
  /** Removes a rule of a workspace. */
  removeRule(request: {
    readonly workspace: string;
    readonly rule: string;
    readonly effect?: string;
    readonly word?: string;
  }): Promise<Done>;
  /** Returns the settings of a workspace, the names of keys, and the identities. */
  settings(workspace: string): Promise<Settings>;
  /** Writes an event of the page to the journal. */
  record(event: string, about: JsonObject): void;
}

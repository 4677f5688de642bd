/**
 * The values that a running PML, the process `pml page` and the page in the browser exchange, as
 * JSON. Times are milliseconds since 1970.
 *
 * @module
 */

/** An answer to a question. `pml approve` offers the same answers. */
export type Reply =
  | "once"
  | "session"
  | "always"
  | "always-reads"
  | "always-all"
  | "no"
  | "never";

/** An answer that a question offers. */
export interface OfferedReply {
  readonly reply: Reply;
  /** The text of its button. */
  readonly label: string;
  /** The effect of the answer, with the file that it writes. */
  readonly reach?: string;
  /** The word that the user has to type first, for example `trust`. */
  readonly word?: string;
}

/** A question that waits for the user. */
export interface Waiting {
  readonly id: string;
  /** Whether it waits in the PML home, or in the form of a client. */
  readonly where: "home" | "client";
  /** The id of the process that asks; undefined if it has ended. */
  readonly process?: string;
  readonly workspace: string;
  readonly server: string;
  readonly tool: string;
  /** The client and the identity that made the call. */
  readonly client?: string;
  readonly identity?: string;
  /** The same text that a terminal shows. */
  readonly text: string;
  readonly askedAt: number;
  readonly expires: number;
  readonly replies: readonly OfferedReply[];
  /** Why no answer covers later calls; undefined if one does, or if PML does not know it. */
  readonly whyOnce?: string;
}

/** A client of a running PML. */
export interface ClientRow {
  readonly name: string;
  readonly version?: string;
  /** Whether the client shows PML's questions; undefined if PML does not know it. */
  readonly canAsk?: boolean;
  readonly identity?: string;
  readonly since: number;
}

/** A server as a workspace has it. */
export interface ServerRow {
  readonly name: string;
  readonly kind: string;
  /** Where it is defined, for example `.pml.json`. */
  readonly origin: string;
  readonly state: "idle" | "starting" | "running" | "failed" | "disabled" | "sign-in" | "key";
  /** The reason of a failure, and the end of the server's stderr. */
  readonly problem?: string;
  readonly stderr?: string;
  /** The number of its tools, if it is known. */
  readonly tools?: number;
  readonly processes?: number;
  readonly memoryBytes?: number;
  /** The actions that are possible now. */
  readonly actions: readonly ("restart" | "stop" | "disable" | "enable" | "sign-in" | "remove")[];
}

/** One call, as lists show it. */
export interface CallRow {
  readonly id: string;
  readonly workspace: string;
  readonly process?: string;
  readonly at: number;
  readonly server: string;
  readonly tool: string;
  readonly state: "running" | "asking" | "done" | "failed" | "refused" | "cancelled";
  readonly ms?: number;
  readonly resultBytes?: number;
  readonly client?: string;
  readonly identity?: string;
  /** The call that made this one, for steps of batches, plans and code. */
  readonly parent?: string;
  readonly code?: string;
}

/** A problem of a workspace or process. */
export interface Problem {
  readonly code?: string;
  readonly message: string;
  readonly hint?: string;
  readonly file?: string;
  readonly line?: number;
}

/** One running PML, as it describes itself. */
export interface ProcessState {
  readonly id: string;
  readonly pid: number;
  readonly command: "stdio" | "serve";
  readonly version: string;
  readonly startedAt: number;
  readonly workspace: string;
  readonly isPaused: boolean;
  readonly clients: readonly ClientRow[];
  readonly servers: readonly ServerRow[];
  readonly questions: readonly Waiting[];
  readonly running: readonly CallRow[];
  readonly problems: readonly Problem[];
}

/** A running PML whose state cannot be shown. */
export interface HiddenProcess {
  readonly id: string;
  readonly pid: number;
  readonly command: string;
  readonly workspace: string;
  readonly reason: string;
}

/** A workspace with a running PML, or with calls in the journal. */
export interface Workspace {
  readonly root: string;
  readonly name: string;
  readonly trust: string;
  readonly isPaused: boolean;
  readonly problems: readonly Problem[];
  readonly servers: readonly ServerRow[];
  /** The next step, which `pml` proposes, too. */
  readonly next?: { readonly text: string; readonly command: string };
}

/** Everything that the first view shows. */
export interface PageState {
  readonly version: string;
  readonly home: string;
  readonly now: number;
  readonly waiting: readonly Waiting[];
  readonly processes: readonly ProcessState[];
  readonly hidden: readonly HiddenProcess[];
  readonly workspaces: readonly Workspace[];
  /** The last calls of all workspaces, the newest first. */
  readonly calls: readonly CallRow[];
  /** A reason why the journal cannot be read. */
  readonly journalProblem?: string;
}

/** One line of `GET /api/events`. */
export type PageEvent =
  | { readonly type: "state"; readonly state: PageState }
  | { readonly type: "call"; readonly call: CallRow }
  | { readonly type: "ended"; readonly process: string }
  | { readonly type: "beat"; readonly now: number };

/** The body of `POST /api/answer`. */
export interface AnswerRequest {
  readonly id: string;
  readonly where: Waiting["where"];
  readonly workspace: string;
  readonly process?: string;
  readonly reply: Reply;
  readonly word?: string;
}

/** The result of an action. */
export interface Done {
  readonly done: boolean;
  /** One sentence for the user. */
  readonly text: string;
  readonly undo?: string;
  /** The next change to look at: after new servers were started, the table of their tools. */
  readonly next?: Plan;
}

/** The body of `POST /api/server`. */
export interface ServerAction {
  readonly workspace: string;
  readonly process?: string;
  readonly name: string;
  readonly action: ServerRow["actions"][number];
  readonly word?: string;
}

/** A change that the user looks at before it is made: `pml add` or `pml import`. */
export interface Plan {
  readonly id: string;
  readonly title: string;
  /** The text that the terminal shows. */
  readonly text: string;
  readonly word?: string;
  readonly tools: readonly PlanTool[];
}

/** One tool of a plan, with the rule that it would get. */
export interface PlanTool {
  readonly server: string;
  readonly tool: string;
  readonly description: string;
  readonly proposed: "allow" | "ask" | "deny";
  readonly reason: string;
}

/** One tool in a list. */
export interface ToolRow {
  readonly id: string;
  readonly description: string;
  readonly rule: "allow" | "ask" | "deny";
}

/** One tool with all facts about it. */
export interface ToolPage extends ToolRow {
  readonly signature: string;
  readonly inputSchema: unknown;
  readonly outputSchema?: unknown;
  readonly annotations?: unknown;
  /** The text of `pml why`. */
  readonly why: string;
  /** The state of its pin, and the difference of a changed definition. */
  readonly pin?: string;
  readonly difference?: string;
}

/** The answer of a search, as the model gets it. */
export interface SearchAnswer {
  readonly text: string;
  readonly tokens: number;
  readonly hits: readonly ToolRow[];
}

/** The answer of a call that the page made. */
export interface CallAnswer {
  readonly id?: string;
  readonly isError: boolean;
  readonly ms: number;
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: unknown;
  readonly error?: Problem;
}

/** The records of one call in the order of the journal. */
export interface CallStory {
  readonly call: CallRow;
  readonly arguments?: unknown;
  readonly result?: unknown;
  readonly steps: readonly {
    readonly at: number;
    readonly what: string;
    readonly text: string;
  }[];
  /** The plan or code that made the call as one of its steps. */
  readonly parent?: CallRow;
  /** The calls that this call made, or the other steps of the same plan or code. */
  readonly children: readonly CallRow[];
}

/** The tokens of lists, per mode and server. */
export interface ContextCosts {
  readonly mode: string;
  readonly modes: readonly { readonly mode: string; readonly tokens: number }[];
  readonly servers: readonly {
    readonly name: string;
    readonly tools: number;
    readonly tokens: number;
  }[];
  /** The command that sets another mode. */
  readonly command?: string;
}

/** Counts over time, for charts: one value for each time in `at`. */
export interface MetricsSeries {
  readonly at: readonly number[];
  readonly calls: readonly number[];
  readonly errors: readonly number[];
  readonly medianMs: readonly (number | null)[];
  readonly resultTokens: readonly number[];
}

/** One rule or session answer. */
export interface RuleRow {
  readonly rule: string;
  readonly effect: "allow" | "ask" | "deny" | "session";
  readonly from: string;
  readonly lastUsed?: number;
  readonly canRemove: boolean;
}

/** Settings, names of keys, and identities. */
export interface Settings {
  readonly settings: readonly {
    readonly key: string;
    readonly value: string;
    readonly from: string;
  }[];
  readonly keys: readonly { readonly name: string; readonly isSet: boolean }[];
  readonly identities: readonly string[];
}

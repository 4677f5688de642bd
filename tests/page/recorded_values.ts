/**
 * Values that a server of the page sends: two workspaces with servers, clients, calls and questions.
 *
 * @module
 */

import type {
  CallRow,
  CallStory,
  ContextCosts,
  MetricsSeries,
  PageState,
  Plan,
  RuleRow,
  SearchAnswer,
  ServerRow,
  Settings,
  ToolPage,
  ToolRow,
  Waiting,
} from "../../src/control/api.ts";

/** The time of all values. */
export const NOW = Date.UTC(2026, 10, 30, 9, 41, 20);
export const [SHOP, BLOG] = ["/home/ada/shop", "/home/ada/blog"];

const STDERR =
  "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/@acme" +
  "%2fmail-server\nnpm error 404  '@acme/mail-server@1.2.0' is not in this registry.";

export const SERVERS: readonly ServerRow[] = [
  {
    ...{ name: "github", kind: "http", origin: ".pml.json", state: "running", tools: 41 },
    ...{ processes: 0, actions: ["restart", "stop", "disable", "remove"] },
  },
  {
    ...{ name: "filesystem", kind: "module", origin: "built-in", state: "idle", tools: 9 },
    actions: ["disable"],
  },
  {
    ...{ name: "mail", kind: "stdio", origin: ".pml.json", state: "failed", tools: 0 },
    ...{ problem: 'Cannot start "mail": the program ended with code 1', stderr: STDERR },
    actions: ["restart", "disable", "remove"],
  },
  {
    ...{ name: "playwright", kind: "stdio", origin: ".pml.json", state: "running", tools: 24 },
    ...{ processes: 2, memoryBytes: 184_000_000 },
    actions: ["restart", "stop", "disable", "remove"],
  },
  {
    ...{ name: "sentry", kind: "http", origin: "/home/ada/.pml/config.json", state: "sign-in" },
    actions: ["sign-in", "disable", "remove"],
  },
];

export const QUESTION: Waiting = {
  ...{ id: "a1b2", where: "home", process: "p1", workspace: SHOP },
  ...{ server: "github", tool: "create_issue", client: "Claude Code" },
  text: [
    'PML asks: may "github:create_issue" run?',
    "",
    '    Server: "github"',
    '    Tool: "create_issue"',
    '    Workspace: "/home/ada/shop"',
    '    Asked by: "Claude Code"',
    "    Arguments:",
    '      "owner": "acme"',
    '      "repo": "shop"',
    '      "title": "The basket loses its items after a sign-in"',
    '      "body": "Steps:\\n1. Put two items into the basket\\n2. Sign in"',
    "",
  ].join("\n"),
  askedAt: NOW - 42_000,
  expires: NOW + 558_000,
  replies: [
    { reply: "once", label: "Allow once" },
    {
      ...{ reply: "session", label: "Allow for this session" },
      reach: "This tool, with any arguments, until Claude Code disconnects",
    },
    {
      ...{ reply: "always", label: "Always allow" },
      reach: "github:create_issue, a rule in /home/ada/shop/.pml.json",
    },
    { reply: "no", label: "Refuse" },
    { reply: "never", label: "Never allow", reach: "A rule in /home/ada/shop/.pml.json" },
  ],
};

export const TRUST: Waiting = {
  ...{ id: "c3", where: "client", process: "p2", workspace: BLOG, identity: "ci" },
  ...{ server: "shell", tool: "run", client: "Cursor", text: "" },
  askedAt: NOW - 5_000,
  expires: NOW + 595_000,
  replies: [
    {
      ...{ reply: "once", label: "Trust this file", word: "trust" },
      reach: "All servers of /home/ada/blog/.pml.json",
    },
    { reply: "no", label: "Not now" },
  ],
  ...{
    text: 'PML asks: may "shell:run" run?\n\n    Server: "shell"\n    Command: "hugo build"\n',
  },
};

const TOOLS = ["github:list_issues", "playwright:browser_navigate", "filesystem:read_file"];
const STATES: readonly CallRow["state"][] = ["done", "done", "done", "failed", "done", "refused"];

/** Returns calls, the newest first. */
export function callRows(count: number): readonly CallRow[] {
  return Array.from({ length: count }, (_, at): CallRow => {
    const [server = "", tool = ""] = (TOOLS[at % TOOLS.length] ?? "").split(":");
    const state = STATES[at % STATES.length] ?? "done";
    return {
      ...{ id: `call${count - at}`, workspace: SHOP, process: "p1", at: NOW - at * 7_300 },
      ...{ server, tool, state, client: "Claude Code" },
      ...state !== "refused" && { ms: 12 + at * 37 % 1_900, resultBytes: 300 + at * 911 % 90_000 },
      ...state === "refused" && { code: "DENIED" },
      ...state === "failed" && { code: "TOOL_ERROR" },
    };
  });
}

export const STATE: PageState = {
  ...{ version: "0.1.0", home: "/home/ada/.pml", now: NOW },
  waiting: [QUESTION],
  processes: [
    {
      ...{ id: "p1", pid: 4711, command: "stdio", version: "0.1.0", startedAt: NOW - 3_600_000 },
      ...{ workspace: SHOP, isPaused: false, servers: SERVERS, questions: [], problems: [] },
      clients: [{ name: "Claude Code", version: "2.1.4", canAsk: true, since: NOW - 3_600_000 }],
      running: [],
    },
    {
      ...{ id: "p2", pid: 4803, command: "serve", version: "0.1.0", startedAt: NOW - 86_400_000 },
      ...{ workspace: BLOG, isPaused: false, servers: [], questions: [], problems: [] },
      clients: [
        { name: "Cursor", version: "1.9", canAsk: false, since: NOW - 900_000 },
        { name: "curl", identity: "ci", since: NOW - 60_000 },
      ],
      running: [],
    },
  ],
  hidden: [{
    ...{ id: "p3", pid: 977, command: "stdio", workspace: BLOG },
    reason: "its version 0.0.9 has no socket",
  }],
  workspaces: [
    {
      ...{ root: SHOP, name: "shop", trust: "trusted", isPaused: false, servers: SERVERS },
      problems: [],
    },
    {
      ...{ root: BLOG, name: "blog", trust: "not trusted yet", isPaused: false, servers: [] },
      problems: [{
        ...{ code: "BAD_CONFIG", file: "/home/ada/blog/.pml.json", line: 14 },
        ...{ message: 'expected a comma after "shell"', hint: "Run `pml check`" },
      }],
      next: { text: "imports the servers of Cursor", command: "pml import cursor" },
    },
  ],
  calls: callRows(20),
};

/** A home in which no client has used PML. */
export const EMPTY_STATE: PageState = {
  ...{ version: "0.1.0", home: "/home/ada/.pml", now: NOW, waiting: [], processes: [], hidden: [] },
  ...{ workspaces: [], calls: [] },
};

export const TOOL_ROWS: readonly ToolRow[] = [
  { id: "github:create_issue", description: "Create a new issue in a repository", rule: "ask" },
  { id: "github:delete_repo", description: "Delete a repository for ever", rule: "deny" },
  {
    ...{ id: "github:list_issues", rule: "allow" },
    description: "List issues of a repository, filtered by state, labels, assignee and time. " +
      "Returns at most 100 issues a page; use the cursor for the next page.",
  },
];

export const TOOL: ToolPage = {
  ...{ id: "github:create_issue", description: "Create a new issue in a repository", rule: "ask" },
  signature: "create_issue(owner: string, repo: string, title: string, body?: string, ...)",
  inputSchema: {
    type: "object",
    properties: {
      owner: { type: "string", description: "The owner of the repository" },
      repo: { type: "string", description: "The name of the repository" },
      title: { type: "string" },
      body: { type: "string", description: "Markdown" },
      milestone: { type: "integer", description: "The number of a milestone" },
      labels: { type: "array", items: { type: "string" } },
      draft: { type: "boolean", default: false },
      priority: { enum: ["low", "high"] },
    },
    required: ["owner", "repo", "title"],
  },
  why: 'ask: no rule matches, and "github:create_issue" changes something',
  pin: "The definition has changed since 12 November",
  difference: ' {\n-  "description": "Create an issue"\n+  "description": "Create a new issue"\n }',
};

export const STORY: CallStory = {
  call: { ...STATE.calls[1] as CallRow, tool: "plan", server: "", ms: 1_910, state: "done" },
  arguments: { plan: [{ call: "github:list_issues", arguments: { owner: "acme", repo: "shop" } }] },
  result: { content: [{ type: "text", text: "3 open issues" }] },
  steps: [
    { at: NOW - 2_000, what: "request", text: "from Claude Code" },
    { at: NOW - 1_999, what: "check", text: "rules: allow by github:list_* in .pml.json" },
    { at: NOW - 1_998, what: "sent", text: "to github" },
    { at: NOW - 90, what: "end", text: "done, 1,231 bytes" },
  ],
  children: callRows(4).map((row, at) => ({
    ...row,
    at: NOW - 1_900 + at * 300,
    ms: 250 + at * 99,
  })),
};

export const COSTS: ContextCosts = {
  mode: "search",
  modes: [
    { mode: "all", tokens: 18_412 },
    { mode: "short", tokens: 7_020 },
    { mode: "search", tokens: 912 },
    { mode: "code", tokens: 1_204 },
  ],
  servers: [
    { name: "github", tools: 41, tokens: 9_310 },
    { name: "playwright", tools: 24, tokens: 6_002 },
    { name: "filesystem", tools: 9, tokens: 3_100 },
  ],
  command: "pml config set exposure all",
};

const MINUTES = Array.from({ length: 60 }, (_, at) => at);
export const SERIES: MetricsSeries = {
  at: MINUTES.map((at) => NOW - (59 - at) * 60_000),
  calls: MINUTES.map((at) => 4 + at * 7 % 11),
  errors: MINUTES.map((at) => at % 9 === 0 ? 2 : 0),
  medianMs: MINUTES.map((at) => at < 4 ? null : 120 + at * 31 % 400),
  resultTokens: MINUTES.map((at) => 800 + at * 577 % 4_000),
};

export const RULES: readonly RuleRow[] = [
  {
    rule: "github:list_*",
    effect: "allow",
    from: ".pml.json",
    lastUsed: NOW - 7_000,
    canRemove: true,
  },
  { rule: "github:delete_*", effect: "deny", from: "/home/ada/.pml/config.json", canRemove: true },
  { rule: "playwright:browser_click", effect: "session", from: "Claude Code", canRemove: true },
  { rule: "shell:*", effect: "ask", from: "the company's policy", canRemove: false },
];

export const SETTINGS: Settings = {
  settings: [
    { key: "exposure.mode", value: "search", from: ".pml.json" },
    { key: "approvals.channel", value: "page", from: "/home/ada/.pml/config.json" },
    { key: "limits.result_tokens", value: "25000", from: "default" },
  ],
  keys: [{ name: "GITHUB_TOKEN", isSet: true }, { name: "SENTRY_KEY", isSet: false }],
  identities: ["ci"],
};

export const SEARCH: SearchAnswer = {
  text: "github:create_issue(owner, repo, title, body?)\n  Create a new issue in a repository",
  tokens: 214,
  hits: TOOL_ROWS,
};

export const PLAN: Plan = {
  ...{ id: "plan1", title: 'Add the server "time"', word: "add" },
  text: 'Server: "time"\nCommand: uvx mcp-server-time\nFile: /home/ada/shop/.pml.json',
  tools: [
    {
      ...{ server: "time", tool: "get_current_time", description: "Get the time in a time zone" },
      ...{ proposed: "allow", reason: "it only reads" },
    },
    {
      ...{ server: "time", tool: "set_alarm", description: "Set an alarm" },
      ...{ proposed: "ask", reason: "it changes something" },
    },
  ],
};

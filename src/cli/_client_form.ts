/**
 * The entry for the file of each client, as its documentation describes it. No entry contains a key.
 *
 * @module
 */

import { type ClientName, tableOf } from "../config/clients.ts";
import { type ProgramStart, throughCmd } from "../config/windows_command.ts";
import { SERVE_PORT } from "./_port.ts";

/** An entry of a server, as a client has it. */
export type ClientEntryValue = Readonly<Record<string, unknown>>;

/** The text that a client's file begins with when PML writes it. */
const BLANK: Partial<Record<ClientName, string>> = {
  codex: "",
  continue: "name: Local\nversion: 1.0.0\nschema: v1\n",
};

/** Returns the text of a file of a client without any server. */
export function blankOf(client: ClientName): string {
  return BLANK[client] ?? "{}\n";
}

/** The entry for a client's file, and its place. */
export interface ClientForm {
  /** The keys of the object that contains the servers. */
  readonly at: readonly [section: string, ...names: string[]];
  /** The entry of PML. */
  readonly entry: ClientEntryValue;
  /** The other entries that PML writes, which this one replaces. */
  readonly instead: readonly ClientEntryValue[];
  /** The question with which the client asks the user for the token. */
  readonly input?: ClientEntryValue | undefined;
  /** The keys of an entry that stay if the entry is replaced. */
  readonly keeps?: readonly string[];
}

/**
 * The members of an entry by which a client runs every tool of the server without its own question.
 */
const ALLOWING: Partial<Record<ClientName, ClientEntryValue>> = {
  // Codex otherwise runs one call of a server after another. PML has its own order where one matters.
  codex: { default_tools_approval_mode: "approve", supports_parallel_tool_calls: true },
  gemini: { trust: true },
  qwen: { trust: true },
};

/** Returns the members of an entry by which a client allows every tool of PML, if it has some. */
export function allowingMembers(client: ClientName): ClientEntryValue | undefined {
  return ALLOWING[client];
}

const type = "http";
const IN_EDITOR = "${env:PML_TOKEN}";
const INPUT = { type: "promptString", id: "pml-token", description: "PML_TOKEN", password: true };

/**
 * The entries for `pml serve`. They name the variable of the token, and never hold the token: a
 * client that takes no variable there has none.
 */
const HTTP: Partial<Record<ClientName, (url: string) => ClientEntryValue>> = {
  "claude-code": (url) => ({
    type,
    url,
    headers: bearer("${PML_TOKEN:-}"),
    alwaysLoad: true,
  }),
  codex: (url) => ({ url, bearer_token_env_var: "PML_TOKEN" }),
  cursor: (url) => ({ url, headers: bearer(IN_EDITOR) }),
  gemini: (url) => ({ httpUrl: url, headers: bearer("$PML_TOKEN") }),
  opencode: (url) => ({
    type: "remote",
    url,
    oauth: false,
    headers: bearer("{env:PML_TOKEN}"),
    enabled: true,
  }),
  vscode: (url) => ({ type, url, headers: bearer("${input:pml-token}") }),
  windsurf: (url) => ({ serverUrl: url, headers: bearer(IN_EDITOR) }),
};

function bearer(token: string): object {
  return { Authorization: `Bearer ${token}` };
}

/** Returns whether a client can use `pml serve` without the token in its file. */
export function takesHttp(client: ClientName): boolean {
  return HTTP[client] !== undefined;
}

/** Returns the entry for the file of a client, whose present text is `text`. */
export function formOf(
  client: ClientName,
  { text = "", http, port = SERVE_PORT, command, isOwn = false, os = Deno.build.os }: {
    readonly text?: string | undefined;
    readonly http: boolean;
    /** The port of `pml serve`. */
    readonly port?: number;
    /** Whether the file is the user's own, and not part of a project. */
    readonly isOwn?: boolean;
    readonly command: string;
    /** The operating system; by default this one. */
    readonly os?: typeof Deno.build.os;
  },
): ClientForm {
  // A later form of opencode's file has one level more.
  const isDeep = client === "opencode" && /"mcp"\s*:\s*\{\s*"servers"\s*:/.test(text);
  const at = [tableOf(client), ...isDeep ? ["servers"] : []] as const;
  // Without it the first turn of `codex exec` has no tool of PML. In a file that a project shares, it
  // would stop Codex for everybody without PML.
  const more = client === "codex" && isOwn ? { required: true } : {};
  const stdio = { ...stdioEntry(client, startOf(client, { command, os })), ...more };
  const over = (at: number) => {
    const entry = HTTP[client]?.(`http://127.0.0.1:${at}/mcp`);
    return entry && { ...entry, ...more };
  };
  const [wanted, usual] = [over(port), over(SERVE_PORT)];
  const keeps = Object.keys(allowingMembers(client) ?? {});
  const others = usual === undefined ? [] : [usual];
  if (!http || wanted === undefined) return { at, entry: stdio, instead: others, keeps };
  const input = client === "vscode" ? INPUT : undefined;
  return { at, entry: wanted, instead: [stdio, ...others], input, keeps };
}

/** The clients that look for `pml.cmd` when they start `pml` on Windows, and start such a file. */
const FINDS_SCRIPTS: ReadonlySet<ClientName> = new Set(
  ["codex", "cursor", "gemini", "opencode", "qwen", "vscode"],
);

/** Returns the command of PML as a client can start it. */
function startOf(
  client: ClientName,
  { command, os }: { readonly command: string; readonly os: typeof Deno.build.os },
): ProgramStart {
  const start = { command, args: ["stdio"] };
  const isStarted = os !== "windows" || FINDS_SCRIPTS.has(client) || /\.exe$/i.test(command);
  return isStarted ? start : throughCmd(start);
}

function stdioEntry(client: ClientName, { command, args }: ProgramStart): ClientEntryValue {
  switch (client) {
    case "claude-code":
      // Without it a first turn in the usual mode of deferred tools has no tool of PML.
      return { type: "stdio", command, args, alwaysLoad: true };
    case "cline":
      // In seconds. Without it Cline ends a server that does not answer within 3 s, and a call after
      // 60 s. PML's own deadline of a call (`limits.call_ms`) is a minute shorter.
      return { command, args, timeout: 660 };
    case "copilot":
      return { type: "local", command, args, tools: ["*"] };
    case "continue":
      return { name: "pml", command, args };
    case "vscode":
      return { type: "stdio", command, args };
    case "zed":
      return { source: "custom", command, args };
    case "opencode":
      return { type: "local", command: [command, ...args], enabled: true };
    default:
      return { command, args };
  }
}

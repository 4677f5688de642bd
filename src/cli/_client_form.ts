/**
 * PML's entry for the file of each client, as the client's documentation describes it. No entry
 * contains a key.
 *
 * @module
 */

import { type ClientName, tableOf } from "../config/clients.ts";
import { type ProgramStart, throughCmd } from "../config/windows_command.ts";
import { SERVE_PORT } from "./_port.ts";

/** An entry of a server in the file of a client. */
export type ClientEntryValue = Readonly<Record<string, unknown>>;

/** The maximum number of addresses in a client's file that are compared with PML's own. */
const PORTS_MAX = 100;

/** The text that a client's file begins with when PML writes it. */
const NEW_FILES: Partial<Record<ClientName, string>> = {
  codex: "",
  continue: "name: Local\nversion: 1.0.0\nschema: v1\n",
};

/** Returns the text of a new file of a client, without servers. */
export function newFileText(client: ClientName): string {
  return NEW_FILES[client] ?? "{}\n";
}

/** The entry for a client's file, and where the file contains it. */
export interface ClientForm {
  /** The keys of the object that contains the servers. */
  readonly at: readonly [section: string, ...names: string[]];
  /** The entry of PML. */
  readonly entry: ClientEntryValue;
  /** Other entries that PML may have written, for example for another port. `entry` replaces them. */
  readonly replaceableEntries: readonly ClientEntryValue[];
  /** The question with which the client asks the user for the token. */
  readonly input?: ClientEntryValue | undefined;
  /** The keys whose values stay if the entry is replaced. */
  readonly keptKeys?: readonly string[];
}

/** The members of an entry that let a client run all tools of the server without a question. */
const ALLOWING_MEMBERS: Partial<Record<ClientName, ClientEntryValue>> = {
  // By default, Codex runs the calls of a server one after another. PML itself orders calls that need it.
  codex: { default_tools_approval_mode: "approve", supports_parallel_tool_calls: true },
  gemini: { trust: true },
  qwen: { trust: true },
};

/** Returns the members that let a client run all tools of PML unasked; undefined if it has none. */
export function allowingMembers(client: ClientName): ClientEntryValue | undefined {
  return ALLOWING_MEMBERS[client];
}

const type = "http";
const EDITOR_TOKEN = "${env:PML_TOKEN}";
/** The input with which VS Code asks the user for the token. */
const INPUT = { type: "promptString", id: "pml-token", description: "PML_TOKEN", password: true };

/**
 * The entries for `pml serve`. They name the variable of the token, and never contain the token. A
 * client whose file cannot name a variable is missing here.
 */
const HTTP_ENTRIES: Partial<Record<ClientName, (url: string) => ClientEntryValue>> = {
  "claude-code": (url) => ({
    type,
    url,
    headers: bearer("${PML_TOKEN:-}"),
    alwaysLoad: true,
  }),
  codex: (url) => ({ url, bearer_token_env_var: "PML_TOKEN" }),
  cursor: (url) => ({ url, headers: bearer(EDITOR_TOKEN) }),
  gemini: (url) => ({ httpUrl: url, headers: bearer("$PML_TOKEN") }),
  opencode: (url) => ({
    type: "remote",
    url,
    oauth: false,
    headers: bearer("{env:PML_TOKEN}"),
    enabled: true,
  }),
  vscode: (url) => ({ type, url, headers: bearer("${input:pml-token}") }),
  windsurf: (url) => ({ serverUrl: url, headers: bearer(EDITOR_TOKEN) }),
};

function bearer(token: string): object {
  return { Authorization: `Bearer ${token}` };
}

/** Returns whether a client can use `pml serve` without the token in its file. */
export function canUseHttp(client: ClientName): boolean {
  return HTTP_ENTRIES[client] !== undefined;
}

/** Returns the entry for the file of a client. `text` is the present text of the file. */
export function createForm(
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
  // Newer versions of opencode's file have one more level.
  const isDeep = client === "opencode" && /"mcp"\s*:\s*\{\s*"servers"\s*:/.test(text);
  const at = [tableOf(client), ...isDeep ? ["servers"] : []] as const;
  // Without `required`, the first turn of `codex exec` has no tool of PML. In a file that a project
  // shares, it would stop Codex for every user without PML.
  const more = client === "codex" && isOwn ? { required: true } : {};
  const stdio = { ...stdioEntry(client, createStart(client, { command, os })), ...more };
  const httpEntryAt = (port: number) => {
    const entry = HTTP_ENTRIES[client]?.(`http://127.0.0.1:${port}/mcp`);
    return entry && { ...entry, ...more };
  };
  const httpEntry = httpEntryAt(port);
  const keptKeys = Object.keys(allowingMembers(client) ?? {});
  const ports = new Set([SERVE_PORT, ...portsIn(text)]);
  const others = [...ports].map(httpEntryAt).filter((entry) => entry !== undefined);
  if (!http || httpEntry === undefined) {
    return { at, entry: stdio, replaceableEntries: others, keptKeys };
  }
  const input = client === "vscode" ? INPUT : undefined;
  return { at, entry: httpEntry, replaceableEntries: [stdio, ...others], input, keptKeys };
}

/** Returns the ports of all addresses in a client's file that look like those of `pml serve`. */
function portsIn(text: string): readonly number[] {
  const addresses = text.matchAll(/\bhttp:\/\/127\.0\.0\.1:(\d{1,5})\/mcp"/g);
  return [...addresses].slice(0, PORTS_MAX).map(([, port]) => Number(port));
}

/** The clients that can start `pml.cmd` by the command `pml` on Windows. */
const STARTS_SCRIPTS: ReadonlySet<ClientName> = new Set(
  ["codex", "cursor", "gemini", "opencode", "qwen", "vscode"],
);

/** Returns a command that starts PML and that this client can run. */
function createStart(
  client: ClientName,
  { command, os }: { readonly command: string; readonly os: typeof Deno.build.os },
): ProgramStart {
  const start = { command, args: ["stdio"] };
  const canStart = os !== "windows" || STARTS_SCRIPTS.has(client) || /\.exe$/i.test(command);
  return canStart ? start : throughCmd(start);
}

function stdioEntry(client: ClientName, { command, args }: ProgramStart): ClientEntryValue {
  switch (client) {
    case "claude-code":
      // By default, Claude Code loads tools later, so without `alwaysLoad` the first turn has none of PML.
      return { type: "stdio", command, args, alwaysLoad: true };
    case "cline":
      // In seconds. By default, Cline ends a server that does not answer within 3 s, and a call after
      // 60 s. This is a minute longer than PML's own deadline of a call (`limits.call_ms`).
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

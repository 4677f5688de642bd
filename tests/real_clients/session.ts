/**
 * One session of a real client in a new home and workspace, with PML from the repository as `pml
 * init` adds it, one prompt, and a fake model.
 *
 * @module
 */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmod, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FILES_ALLOWED } from "../attacks/stage.ts";
import { denoCommand, pmlCommand } from "../kit/pml_command.ts";
import { ProcWatch } from "../kit/procwatch.ts";
import { runPml } from "../kit/run.ts";
import { waitUntil } from "../kit/wait.ts";
import { makeWorkspace, type Workspace, writeFiles } from "../kit/workspace.ts";
import type { ToolName } from "./apis.ts";
import type { Place, RealClient } from "./clients.ts";
import { installClient } from "./install.ts";
import { serveModel, type Step } from "./model.ts";
import type { Recorded } from "./tee.ts";

/**
 * The time limit of a session that does not end by itself, in milliseconds; a busy machine is slow.
 */
const SESSION_MS = 300_000;

/** The script of the model: it searches, and calls a tool from the result. */
const SCRIPT: readonly Step[] = [
  { tool: "search", args: { query: "read a file" } },
  { tool: "call", args: { tool: "filesystem:read_file", arguments: { path: "a.txt" } } },
];

/** The requests to the model, and the messages between client and PML. */
export interface Session {
  /** The tools that each request to the model offered. */
  readonly offered: readonly (readonly ToolName[])[];
  /** The results of tools that the model got, in order. */
  readonly results: readonly string[];
  /** The text of the file that the model read. */
  readonly secret: string;
  /** All messages between the client and PML. */
  readonly recorded: readonly Recorded[];
  /** Milliseconds since 1970 when the client was started. */
  readonly startedAt: number;
  /** All output of the client. */
  readonly output: string;
}

/** Runs a client once, and ends all processes that it leaves. */
export async function runSession(client: RealClient): Promise<Session> {
  const program = await installClient(client);
  const secret = `text-${randomUUID()}`;
  await using ws = await makeWorkspace({ files: { "a.txt": secret }, pml: FILES_ALLOWED });
  await using model = serveModel(SCRIPT, client.toolName);
  const record = join(ws.root, "record.jsonl");
  const place: Place = { model: model.url, home: dirname(ws.home), workspace: ws.path };
  const bin = await putPmlOnPath(ws, record);
  const env = { ...ws.env, PATH: `${bin}:${ws.env.PATH}`, ...client.env(place) };
  const files = Object.entries(client.files(place)).map(([path, content]) => [
    path,
    typeof content === "string" ? content : JSON.stringify(content),
  ]);
  await writeFiles("/", Object.fromEntries(files));
  const own = client.isOwn ? ["--user"] : [];
  const init = await runPml(ws, ["init", "--client", client.name, ...own, "--yes"], { env });
  assert.equal(init.code, 0, init.stderr);
  try {
    if (client.before !== undefined) await run([program, ...client.before(place)], { ws, env });
    const startedAt = Date.now();
    const prompt = "Read the file a.txt with the tools of pml.";
    const output = await run([program, ...client.args(prompt)], { ws, env });
    return {
      offered: model.requests.map(({ tools }) => tools),
      results: model.requests.at(-1)?.results ?? [],
      ...{ secret, startedAt, output },
      recorded: await recordedIn(record),
    };
  } finally {
    await endAll(ws);
  }
}

/**
 * Creates a program `pml` that runs PML from the repository, and records the messages between `pml
 * stdio` and the client.
 */
async function putPmlOnPath(ws: Workspace, record: string): Promise<string> {
  // Some clients start servers with only a few variables, but PML needs these variables of the test.
  const names = Object.keys(ws.env).filter((name) => /^(PML|DENO)_/.test(name));
  const exports = names.map((name) => `export ${name}=${quoted(ws.env[name] ?? "")}`);
  const pml = pmlCommand().map(quoted).join(" ");
  const tee = [...denoCommand("tests/real_clients/tee.ts"), record].map(quoted).join(" ");
  const text = [
    "#!/bin/sh",
    ...exports,
    `if [ "$1" = stdio ]; then exec ${tee} ${pml} "$@"; fi`,
    `exec ${pml} "$@"`,
  ];
  const bin = join(ws.root, "bin");
  await writeFiles(bin, { pml: `${text.join("\n")}\n` });
  await chmod(join(bin, "pml"), 0o755);
  return bin;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Runs a client until it ends, and returns its output. */
async function run(
  [program = "", ...args]: readonly string[],
  { ws, env }: { readonly ws: Workspace; readonly env: Readonly<Record<string, string>> },
): Promise<string> {
  const timer = setTimeout(() => endAll(ws), SESSION_MS);
  // To a file: a daemon of a client would keep a pipe open.
  const path = join(ws.root, "output.txt");
  const line = `exec "$@" >>${quoted(path)} 2>&1`;
  try {
    const shell = ["-c", line, "sh", program, ...args];
    const options = { args: shell, cwd: ws.path, env, clearEnv: true, stdin: "null" } as const;
    await new Deno.Command("sh", options).spawn().status;
  } finally {
    clearTimeout(timer);
  }
  return await readFile(path, "utf8");
}

/** Ends the processes of a session: Codex and Cline leave daemons. */
async function endAll(ws: Workspace): Promise<void> {
  const watch = new ProcWatch(ws);
  const isEmpty = async () => (await watch.living()).length === 0;
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (const { pid } of await watch.living()) {
      try {
        Deno.kill(pid, signal);
      } catch {
        // it has ended already
      }
    }
    if (await waitUntil(isEmpty, 20_000)) return;
  }
  await watch.assertNothingLeft();
}

async function recordedIn(path: string): Promise<readonly Recorded[]> {
  const text = await readFile(path, "utf8").catch(() => ""); // the client never started PML
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}

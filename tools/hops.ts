/**
 * `deno task hops`: counts the functions of ours that run in one call of each of three kinds, and
 * shows in which order the files are entered.
 *
 *     deno task hops [--json]
 *
 * @module
 */

import { join } from "node:path";
import { setImmediate } from "node:timers";
import { type OpenedGateway, openGateway } from "../mod.ts";
import { FakeRegistry, moduleEntry } from "../tests/kit/fake_registry.ts";
import { makeWorkspace } from "../tests/kit/workspace.ts";
import { type Hop, type Ran, Session } from "./hops/session.ts";

/** What one call takes. */
export interface Hops {
  readonly call: string;
  /** How many functions with a name ran, each counted once. */
  readonly named: number;
  /** The same with those that have none. */
  readonly functions: number;
  readonly files: number;
  /** The files in the order in which the call went into them; one may come again. */
  readonly order: readonly string[];
  /** The functions with a name in the order in which they were entered. */
  readonly entered: readonly Hop[];
}

const ROOT = new URL("../src/", import.meta.url).href;
const SELF = new URL(import.meta.url).pathname;
const ECHO = new URL("../tests/kit/echo_server.ts", import.meta.url).pathname;
/** Two servers of a registry: one to count, one to see the order. */
const NAMES = ["first", "second"] as const;

if (import.meta.main) {
  if (Deno.args.includes("--registry")) await serve();
  else {
    const all = await hops();
    console.log(Deno.args.includes("--json") ? JSON.stringify(all, undefined, 2) : textOf(all));
  }
}

/** Counts what runs in a warm call of a built-in, of a server on stdio, and in a first use. */
export async function hops(): Promise<readonly Hops[]> {
  await using registry = await startRegistry();
  await using ws = await makeWorkspace({
    files: { "a.txt": "a\n" },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "echo:*", ...NAMES.map((name) => `${name}:*`)] },
      mcpServers: { echo: { command: Deno.execPath(), args: ["run", "-A", ECHO] } },
    },
  });
  const set = {
    HOME: ws.root,
    PML_HOME: ws.home,
    PML_WORKSPACE: ws.path,
    PML_TRUST: join(ws.path, ".pml.json"),
    PML_REGISTRIES: registry.url,
  };
  for (const [name, value] of Object.entries(set)) Deno.env.set(name, value);
  await using gateway = await openGateway({ cwd: ws.path });
  using session = new Session(ROOT);
  const read = () => whole(gateway.callTool("filesystem:read_file", { path: "a.txt" }));
  const echo = () => whole(gateway.callTool("echo:echo", { a: 1 }));
  const found: Hops[] = [];
  for (
    const [call, run] of [["a warm `filesystem:read_file`", read], [
      "a warm call of a server on stdio",
      echo,
    ]] as const
  ) {
    // What is done once is not of a warm call.
    for (let turn = 0; turn < 3; turn++) await run();
    await quiet();
    const functions = await always(session, run);
    found.push(hopsOf(call, functions, await session.traced(functions, run)));
  }
  const [count, order] = NAMES.map((name) => () => use(gateway, name)) as [Run, Run];
  const functions = await session.covered(count);
  const traced = await session.traced(functions, order);
  return [...found, hopsOf("a first use of a registry's module", functions, traced)];
}

type Run = () => Promise<unknown>;

async function use(gateway: OpenedGateway, name: string): Promise<void> {
  await whole(gateway.callTool(`${name}:go`));
}

/** Waits for a call, and for what is left of it when its answer was sent. */
async function whole(call: Promise<unknown>): Promise<void> {
  await call;
  await new Promise((resolve) => setImmediate(resolve));
}

/** Waits until what goes on behind calls is over: nothing of it is of the next one. */
async function quiet(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 300));
}

/** Gives the functions that run in each of several calls: a timer that goes off runs in one. */
async function always(session: Session, run: Run): Promise<readonly Ran[]> {
  const keyOf = ({ file, start, end }: Ran) => `${file} ${start} ${end}`;
  let all = await session.covered(run);
  for (let turn = 0; turn < 4; turn++) {
    const now = new Set((await session.covered(run)).map(keyOf));
    all = all.filter((one) => now.has(keyOf(one)));
  }
  return all;
}

function hopsOf(call: string, functions: readonly Hop[], traced: readonly Hop[]): Hops {
  const order = traced.map(({ file }) => file).filter((file, at, all) => file !== all[at - 1]);
  return {
    call,
    named: functions.filter(({ name }) => name !== "").length,
    functions: functions.length,
    files: new Set(functions.map(({ file }) => file)).size,
    order,
    entered: traced.filter(({ name }) => name !== "").map(({ name, file }) => ({ name, file })),
  };
}

/** Says how often a call goes into each file, in the order in which it first comes there. */
function textOf(all: readonly Hops[]): string {
  return all.map(({ call, named, functions, files, order }) => {
    const times = Map.groupBy(order, (file) => file);
    const list = [...times].map(([file, { length }]) => `${file} ${length}`);
    return `${call}: ${named} named functions (${functions} with those without a name) in ` +
      `${files} files, ${order.length} times into a file\n  ${list.join(", ")}\n`;
  }).join("\n");
}

/** Starts the registry as a process of its own, so that nothing of it is counted. */
async function startRegistry(): Promise<{ readonly url: string } & AsyncDisposable> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", SELF, "--registry"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  const dispose = async () => {
    await child.stdin.close();
    await reader.cancel();
    await child.status;
  };
  return { url: value.trim(), [Symbol.asyncDispose]: dispose };
}

/** Serves two modules until nobody needs them any more. */
async function serve(): Promise<void> {
  const entries = NAMES.map((name) =>
    moduleEntry(
      name,
      `export const __meta__ = { name: "${name}", version: "1.0.0", tools: { go: {} } };
       export function go() { return "went"; }`,
    )
  );
  await using registry = await FakeRegistry.open(await Promise.all(entries));
  console.log(registry.url);
  for await (const _ of Deno.stdin.readable);
}

/**
 * Measures calls of a stdio server through `pml stdio`, relative to a relay that only parses and
 * forwards, and long lists, relative to the server itself.
 *
 * @module
 */

import {
  type Budget,
  median,
  pathOf,
  type Row,
  type SpawnOptions,
  StdioProcess,
} from "./measure.ts";

const ROUNDS = 3;
const WARM_UP = 30;
const CALLS = 300;
const LARGE_CALLS = 12;
const LARGE = 1_000_000;
const LISTS = 12;
const AT_ONCE = 64;
const LOAD_MS = 800;
/** The wait until a start has finished its work in the background, in milliseconds. */
const SETTLED_MS = 800;

type Mode = "full_proxy" | "meta_only";
type Call = (tool: string, args: object) => Promise<unknown>;

/** The figures of one gateway in one round. */
interface Round {
  /** The median time of a small call, in milliseconds. */
  readonly small: number;
  /** The median time of a call with a result of 1 MB, in milliseconds. */
  readonly large: number;
  /** The number of small calls in a second, with `AT_ONCE` calls at once. */
  readonly perSecond: number;
  /** The memory of the process before the calls. */
  readonly idleMb: number;
  /** The memory of the process after the calls. */
  readonly loadMb: number;
}

/** Measures the relay, and PML with all tools listed and with meta-tools, in turn. */
export async function benchGateway(): Promise<readonly Row[]> {
  const relay: Round[] = [];
  const all: Round[] = [];
  const meta: Round[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    relay.push(await throughRelay());
    all.push(await throughPml("full_proxy"));
    meta.push(await throughPml("meta_only"));
  }
  const figure = (rounds: readonly Round[], of: keyof Round) =>
    median(rounds.map((round) => round[of]));
  const row = (
    what: string,
    { of, unit, wanted, rounds = all }: {
      readonly of: keyof Round;
      readonly unit: string;
      readonly wanted: Budget;
      readonly rounds?: readonly Round[];
    },
  ): Row => ({
    what: `${what}, relative to a relay`,
    value: figure(rounds, of),
    baseline: figure(relay, of),
    ...{ unit, wanted, runs: ROUNDS },
  });
  const ms = { unit: "ms" };
  return [
    row("small call, all tools", { ...ms, of: "small", wanted: { of: "ratio", most: 1.2 } }),
    row("small call, meta-tools", {
      ...{ ...ms, of: "small", rounds: meta },
      wanted: { of: "ratio", most: 1.25 },
    }),
    row("call of 1 MB", { ...ms, of: "large", wanted: { of: "ratio", most: 1 } }),
    row(`calls at ${AT_ONCE} at once`, {
      ...{ of: "perSecond", unit: "/s" },
      wanted: { of: "ratio", least: 0.55 },
    }),
    row("memory with a server, idle, meta-tools", {
      ...{ of: "idleMb", unit: "MB", rounds: meta },
      wanted: { of: "figure", most: 68 },
    }),
    row("memory under load, meta-tools", {
      ...{ of: "loadMb", unit: "MB", rounds: meta },
      wanted: { of: "figure", most: 130 },
    }),
    await listRow(),
  ];
}

/** Returns the arguments of Deno that start a server with `tools` tools. */
function serverArgs(tools: number): readonly string[] {
  return ["run", "-A", pathOf("bench/floor/server.ts"), `${tools}`];
}

async function throughRelay(): Promise<Round> {
  await using folder = await Folder.make();
  const args = [Deno.execPath(), ...serverArgs(10)];
  await using relay = new StdioProcess(pathOf("bench/floor/relay.ts"), { ...folder.options, args });
  await relay.initialize();
  return await measureRound(relay, callOf(relay, (name, args) => ({ name, arguments: args })));
}

async function throughPml(mode: Mode): Promise<Round> {
  await using folder = await Folder.make(mode);
  await using pml = new StdioProcess(pathOf("mod.ts"), { ...folder.options, args: ["stdio"] });
  await pml.initialize();
  const { tools } = await pml.request(1, "tools/list", {}) as { tools: { name: string }[] };
  const listedName = (tool: string) =>
    tools.find(({ name }) => name.startsWith("plain") && name.endsWith(tool))?.name;
  const params = (tool: string, args: object) =>
    mode === "full_proxy"
      ? { name: listedName(tool), arguments: args }
      : { name: "call", arguments: { tool: `plain:${tool}`, arguments: args } };
  return await measureRound(pml, callOf(pml, params));
}

function callOf(server: StdioProcess, params: (tool: string, args: object) => unknown): Call {
  let id = 1_000;
  return async (tool, args) => {
    const result = await server.request(++id, "tools/call", params(tool, args));
    const { content, isError } = result as { content?: { text: string }[]; isError?: boolean };
    if (content?.[0] === undefined || isError) throw new Error(JSON.stringify(result));
    return content;
  };
}

async function measureRound(server: StdioProcess, call: Call): Promise<Round> {
  await call("echo", { text: "first" });
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  const idleMb = server.rssMb;
  const small = await medianTime(CALLS, (at) => call("echo", { text: `hello ${at}` }));
  const large = await medianTime(LARGE_CALLS, () => call("payload", { bytes: LARGE }), 3);
  const perSecond = await callsPerSecond(call);
  return { idleMb, small, large, perSecond, loadMb: server.rssMb };
}

async function callsPerSecond(call: Call): Promise<number> {
  const since = performance.now();
  let count = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, at) => {
      for (; performance.now() - since < LOAD_MS; count++) await call("echo", { text: `${at}` });
    }),
  );
  return count / (performance.now() - since) * 1_000;
}

/** Measures a list of a thousand tools, from the server itself and through PML. */
async function listRow(): Promise<Row> {
  await using folder = await Folder.make("full_proxy", 1_000);
  const list = async (server: StdioProcess, least: number) => {
    await server.initialize();
    let id = 0;
    return await medianTime(LISTS, async () => {
      let count = 0;
      let cursor: string | undefined;
      do {
        const page = await server.request(++id, "tools/list", cursor ? { cursor } : {});
        const { tools, nextCursor } = page as { tools: unknown[]; nextCursor?: string };
        count += tools.length;
        cursor = nextCursor;
      } while (cursor !== undefined);
      if (count < least) throw new Error(`There are only ${count} tools`);
    }, 3);
  };
  await using server = new StdioProcess(pathOf("bench/floor/server.ts"), {
    ...folder.options,
    args: ["1000"],
  });
  await using pml = new StdioProcess(pathOf("mod.ts"), { ...folder.options, args: ["stdio"] });
  return {
    what: "list of 1,000 tools, relative to the server itself",
    value: await list(pml, 1_000),
    baseline: await list(server, 1_000),
    unit: "ms",
    wanted: { of: "ratio", most: 1.5 },
    runs: LISTS,
  };
}

async function medianTime(
  runs: number,
  step: (at: number) => Promise<unknown>,
  warmUp = WARM_UP,
): Promise<number> {
  const times: number[] = [];
  for (let run = -warmUp; run < runs; run++) {
    const since = performance.now();
    await step(run);
    if (run >= 0) times.push(performance.now() - since);
  }
  return median(times);
}

/** A workspace with one server, and a home. */
class Folder implements AsyncDisposable {
  readonly options: Omit<SpawnOptions, "args">;
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
    this.options = { cwd: `${root}/ws`, home: `${root}/home` };
  }

  static async make(mode: Mode = "meta_only", tools = 10): Promise<Folder> {
    const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-bench-" }));
    await Deno.mkdir(`${root}/ws/.git`, { recursive: true });
    const config = {
      version: 1,
      gateway: { tools_exposure: mode },
      permissions: { allow: ["*"] },
      mcpServers: { plain: { command: Deno.execPath(), args: serverArgs(tools) } },
    };
    await Deno.writeTextFile(`${root}/ws/.pml.json`, JSON.stringify(config));
    // Disables paging of large results, because the relay returns them complete, too.
    await Deno.mkdir(`${root}/home`, { mode: 0o700 });
    await Deno.writeTextFile(`${root}/home/config.yaml`, "limits: { inline_bytes: 0 }\n");
    return new Folder(root);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#root, { recursive: true });
  }
}

if (import.meta.main) console.log(JSON.stringify(await benchGateway(), null, 2));

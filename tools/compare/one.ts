/**
 * Compares one server: installs it, and runs it without and with PML, in a temporary folder.
 *
 * @module
 */

import { basename, join } from "node:path";
import {
  connect,
  type Connection,
  type Era,
  ERAS,
  type Json,
  type ListName,
  LISTS,
  messageOf,
  type Start,
} from "./connection.ts";
import { type Difference, differencesOf, entriesOf, resultDifference } from "./lists.ts";
import { closeFolder, openFolder, passedVariables, run } from "./programs.ts";

/** An entry of `servers.json`. */
export interface ListedServer {
  readonly name: string;
  readonly package: string;
  /** The program of the package, if it has several. */
  readonly bin?: string;
  readonly args?: readonly string[];
  /** Variables, with placeholders for keys. */
  readonly env?: Readonly<Record<string, string>>;
  /** Calls that need no network. */
  readonly calls?: readonly {
    readonly tool: string;
    readonly arguments: Json;
    readonly varies?: boolean;
  }[];
  /** Why the server is not compared. */
  readonly skip?: string;
}

/** The result of one run of a server through PML. */
export interface ComparedRun {
  readonly era: Era;
  readonly confined: boolean;
  /** Whether the server itself supports the revision `era`. */
  readonly spoken: boolean;
  /** The numbers of compared entries and calls. */
  readonly counts: Readonly<Record<ListName | "calls", number>>;
  readonly differences: readonly Difference[];
  /** Why the run failed. */
  readonly failed?: string;
}

/** The result of the comparison of one server. */
export interface Outcome {
  readonly name: string;
  readonly package: string;
  readonly version?: string;
  readonly skipped?: string;
  readonly runs: readonly ComparedRun[];
}

/** The lists and results of one connection. */
interface Observation {
  readonly lists: Readonly<Record<ListName, readonly Json[]>>;
  readonly results: readonly Json[];
}

/** The folders and the commands of one comparison. */
interface Scene {
  readonly listed: ListedServer;
  readonly folder: string;
  readonly workspace: string;
  readonly version: string;
  readonly direct: Start;
}

/** Variables that disable telemetry and update checks of servers. */
const QUIET = { DO_NOT_TRACK: "1", NO_UPDATE_NOTIFIER: "1" };
/** The maximum number of times that a list of PML is read, every 500 ms, for a slow server. */
const MAX_READS = 240;

/** Compares one server in all ways. Calls `onStep` with a description of each step. */
export async function compareOne(
  listed: ListedServer,
  onStep: (text: string) => void,
): Promise<Outcome> {
  const server = { name: listed.name, package: listed.package };
  if (listed.skip !== undefined) return { ...server, skipped: listed.skip, runs: [] };
  const folder = await openFolder();
  let version: string | undefined;
  try {
    onStep("npm installs it");
    const scene = await makeScene(listed, folder);
    ({ version } = scene);
    onStep(`${version}: directly`);
    const seen = await runDirectly(scene);
    return { ...server, version, runs: await runThroughAll(scene, seen, onStep) };
  } catch (error) {
    return {
      ...server,
      ...(version !== undefined && { version }),
      skipped: messageOf(error),
      runs: [],
    };
  } finally {
    const endedNames = await closeFolder(folder);
    if (endedNames.length > 0) onStep(`ended the remaining processes: ${endedNames.join(", ")}`);
  }
}

async function makeScene(listed: ListedServer, folder: string): Promise<Scene> {
  const workspace = join(folder, "workspace");
  const prefix = join(folder, "direct");
  await Deno.mkdir(prefix);
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefix", prefix];
  await run(folder, { command: "npm", args: ["install", ...flags, listed.package] });
  const root = join(prefix, "node_modules", listed.package);
  const { version, bin } = JSON.parse(await Deno.readTextFile(join(root, "package.json")));
  const name = listed.bin ?? basename(listed.package);
  const file = typeof bin === "string" ? bin : bin?.[name] ?? Object.values(bin ?? {})[0];
  if (typeof file !== "string") throw new Error("The package has no program");
  const scene = { listed, folder, workspace, version };
  const { args, env } = definitionOf(scene);
  const direct = { command: "node", args: [join(root, file), ...args], cwd: workspace };
  return { ...scene, direct: { ...direct, env: { ...passedVariables(), ...env } } };
}

/**
 * Returns the arguments, variables and calls of a server, with the path of the workspace inserted.
 */
function definitionOf({ listed, workspace }: Pick<Scene, "listed" | "workspace">) {
  const { args = [], env, calls = [] } = listed;
  const text = JSON.stringify({ args, env, calls }).replaceAll("${workspace}", workspace);
  const filled = JSON.parse(text) as Required<Pick<ListedServer, "args" | "env" | "calls">>;
  return { ...filled, env: { ...QUIET, HOME: join(workspace, "home"), ...filled.env } };
}

/** Creates the workspace again, without changes of earlier runs. */
async function resetWorkspace({ workspace }: Scene): Promise<void> {
  await Deno.remove(workspace, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  for (const name of ["home", "files"]) {
    await Deno.mkdir(join(workspace, name), { recursive: true });
  }
  await Deno.writeTextFile(join(workspace, "files", "notes.txt"), "one\ntwo\nthree\n");
}

/** Runs the server without PML, with each revision that it supports. */
async function runDirectly(scene: Scene): Promise<ReadonlyMap<Era, Observation>> {
  const seen = new Map<Era, Observation>();
  const problems: string[] = [];
  for (const era of ERAS) {
    try {
      await resetWorkspace(scene);
      await using connection = await connect(scene.direct, era);
      seen.set(era, await observe(scene, connection));
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  if (seen.size === 0) throw new Error(`Does not run directly: ${problems[0]}`);
  return seen;
}

/** Runs the server through PML with each revision, with and without `confine`. */
async function runThroughAll(
  scene: Scene,
  seen: ReadonlyMap<Era, Observation>,
  onStep: (text: string) => void,
): Promise<readonly ComparedRun[]> {
  const runs: ComparedRun[] = [];
  for (const confined of [false, true]) {
    for (const era of ERAS) {
      await resetWorkspace(scene);
      await writeDefinition(scene, confined);
      onStep(`through PML, ${era}${confined ? ", confined" : ""}`);
      const direct = seen.get(era) ?? seen.get("2025-11-25") ?? seen.get("2026-07-28");
      if (direct === undefined) continue;
      const head = { era, confined, spoken: seen.has(era) };
      runs.push({ ...head, ...await runThrough(scene, { ...head, direct }) });
    }
  }
  return runs;
}

/** Writes the definition of the server to the `.pml.json` of the workspace. */
async function writeDefinition(scene: Scene, confine: boolean): Promise<void> {
  const { listed: { name, package: packageName, bin }, version, workspace } = scene;
  const { args, env } = definitionOf(scene);
  const spec = `${packageName}@${version}`;
  const packageArgs = bin === undefined ? ["-y", spec] : ["-y", "-p", spec, bin];
  const server = { command: "npx", args: [...packageArgs, ...args], env };
  const file = {
    version: 1,
    permissions: { allow: [`${name}:*`] },
    gateway: { tools_exposure: "full_proxy" },
    mcpServers: { [name]: { ...server, ...(confine && { confine }) } },
  };
  await Deno.writeTextFile(join(workspace, ".pml.json"), JSON.stringify(file));
}

async function runThrough(
  scene: Scene,
  { era, confined, spoken, direct }: {
    readonly era: Era;
    readonly confined: boolean;
    readonly spoken: boolean;
    readonly direct: Observation;
  },
): Promise<Pick<ComparedRun, "counts" | "differences" | "failed">> {
  const { name } = scene.listed;
  const counts = countsOf(direct);
  try {
    // Installs the package, and returns the reason if the server does not run.
    const listing = pmlCommand(scene, ["tools", "--refresh", "--json", name]);
    const { servers: [state] } = JSON.parse(await run(scene.workspace, listing, listing.env));
    // If the server does not start now, PML lists the tools of an earlier start.
    if (state?.state === "failed") throw new Error(state.why);
    await using connection = await connect(pmlCommand(scene, ["stdio"]), era);
    const seen = await observe(scene, connection, { server: name, direct: direct.lists });
    const ignored = spoken ? [] : ["execution"];
    const lists = (Object.keys(LISTS) as ListName[]).flatMap((list) =>
      differencesOf(list, { direct: direct.lists[list], through: seen.lists[list], ignored })
    );
    const calls = (scene.listed.calls ?? []).flatMap(({ tool, varies = false }, at) =>
      resultDifference(tool, {
        ...{ direct: direct.results[at] ?? {}, through: seen.results[at] ?? {} },
        ...{ server: name, varies },
      })
    );
    return { counts, differences: [...lists, ...calls] };
  } catch (error) {
    const why = messageOf(error);
    return { counts, differences: [], failed: confined ? why : `Through PML: ${why}` };
  }
}

/** Returns a command of PML with a separate home and a trusted workspace. */
function pmlCommand({ folder, workspace }: Scene, args: readonly string[]): Start {
  const root = new URL("../../", import.meta.url);
  const file = (name: string) => decodeURIComponent(new URL(name, root).pathname);
  return {
    command: Deno.execPath(),
    args: ["run", "-A", "--config", file("deno.json"), file("mod.ts"), ...args],
    cwd: workspace,
    env: {
      ...passedVariables(),
      ...{ PML_HOME: join(folder, "home"), PML_LOG_LEVEL: "error", PML_REGISTRIES: "none" },
      ...{ PML_TRUST: workspace, PML_WORKSPACE: workspace, HOME: Deno.env.get("HOME") ?? folder },
    },
  };
}

/**
 * Reads the lists and makes the calls. With `through`, the connection is to PML, and the result has
 * only the entries of one server.
 */
async function observe(
  scene: Scene,
  connection: Connection,
  through?: { readonly server: string; readonly direct: Observation["lists"] },
): Promise<Observation> {
  const readOnce = async (name: ListName) => {
    const list = await connection.list(name) ?? [];
    return through === undefined ? list : entriesOf(list, { server: through.server, name });
  };
  const read = async (name: ListName) => {
    const expectedCount = through?.direct[name].length ?? 0;
    let list = await readOnce(name);
    // PML first lists the entries that it knows. It adds the other entries when the server has started.
    // When its tools are listed, the server has started, so the other lists need less time.
    const maxReads = name === "tools" ? MAX_READS : MAX_READS / 10;
    for (let at = 0; at < maxReads && list.length < expectedCount; at++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      list = await readOnce(name);
    }
    return list;
  };
  const tools = await read("tools");
  if (tools.length === 0 && through !== undefined && through.direct.tools.length > 0) {
    throw new Error("PML did not list its tools in time");
  }
  const lists = {
    tools,
    prompts: await read("prompts"),
    resources: await read("resources"),
    resourceTemplates: await read("resourceTemplates"),
  };
  const results: Json[] = [];
  const prefix = through === undefined ? "" : `${through.server}__`;
  for (const { tool, arguments: args } of definitionOf(scene).calls) {
    results.push(await connection.call(`${prefix}${tool}`, args));
  }
  return { lists, results };
}

function countsOf({ lists, results }: Observation): ComparedRun["counts"] {
  const { tools, prompts, resources, resourceTemplates } = lists;
  return {
    tools: tools.length,
    prompts: prompts.length,
    resources: resources.length,
    resourceTemplates: resourceTemplates.length,
    calls: results.length,
  };
}

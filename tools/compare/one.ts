/**
 * Compares one server: installs it, runs it directly and through PML, in a temporary folder.
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
import { enter, leave, passed, run } from "./programs.ts";

/** A server of the list, as `servers.json` has it. */
export interface Listed {
  readonly name: string;
  readonly package: string;
  /** The program of the package, where npm would not know which. */
  readonly bin?: string;
  readonly args?: readonly string[];
  /** Placeholders: no account is behind any of them. */
  readonly env?: Readonly<Record<string, string>>;
  /** Calls that reach nothing outside. */
  readonly calls?: readonly {
    readonly tool: string;
    readonly arguments: Json;
    readonly varies?: boolean;
  }[];
  /** Why it is not compared. */
  readonly skip?: string;
}

/** The result of one way of running a server through PML. */
export interface Compared {
  readonly era: Era;
  readonly confined: boolean;
  /** Whether the server itself speaks that era. */
  readonly spoken: boolean;
  /** How many entries and calls were compared. */
  readonly counts: Readonly<Record<ListName | "calls", number>>;
  readonly differences: readonly Difference[];
  /** Why nothing could be compared this way. */
  readonly failed?: string;
}

/** The result of the comparison of one server. */
export interface Outcome {
  readonly name: string;
  readonly package: string;
  readonly version?: string;
  readonly skipped?: string;
  readonly runs: readonly Compared[];
}

/** All that was read in one connection. */
interface Seen {
  readonly lists: Readonly<Record<ListName, readonly Json[]>>;
  readonly results: readonly Json[];
}

/** The folders and the commands of one comparison. */
interface Scene {
  readonly listed: Listed;
  readonly folder: string;
  readonly workspace: string;
  readonly version: string;
  readonly direct: Start;
}

/** Asks servers not to tell anybody that they ran. */
const QUIET = { DO_NOT_TRACK: "1", NO_UPDATE_NOTIFIER: "1" };
/** A first list of PML waits for no server longer than this many looks, 500 ms apart. */
const LOOKS = 240;

/** Compares one server in all ways. Reports its steps to `tell`. */
export async function compareOne(
  listed: Listed,
  tell: (text: string) => void,
): Promise<Outcome> {
  const told = { name: listed.name, package: listed.package };
  if (listed.skip !== undefined) return { ...told, skipped: listed.skip, runs: [] };
  const folder = await enter();
  let version: string | undefined;
  try {
    tell("npm installs it");
    const scene = await makeScene(listed, folder);
    ({ version } = scene);
    tell(`${version}: directly`);
    const seen = await directly(scene);
    return { ...told, version, runs: await throughAll(scene, seen, tell) };
  } catch (error) {
    return {
      ...told,
      ...(version !== undefined && { version }),
      skipped: messageOf(error),
      runs: [],
    };
  } finally {
    const left = await leave(folder);
    if (left.length > 0) tell(`ended the remaining processes: ${left.join(", ")}`);
  }
}

async function makeScene(listed: Listed, folder: string): Promise<Scene> {
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
  return { ...scene, direct: { ...direct, env: { ...passed(), ...env } } };
}

/**
 * Returns the arguments and the variables of a server, and its calls, with the workspace filled in.
 */
function definitionOf({ listed, workspace }: Pick<Scene, "listed" | "workspace">) {
  const { args = [], env, calls = [] } = listed;
  const text = JSON.stringify({ args, env, calls }).replaceAll("${workspace}", workspace);
  const filled = JSON.parse(text) as Required<Pick<Listed, "args" | "env" | "calls">>;
  return { ...filled, env: { ...QUIET, HOME: join(workspace, "home"), ...filled.env } };
}

/** Makes the workspace as it was before anything ran in it. */
async function clean({ workspace }: Scene): Promise<void> {
  await Deno.remove(workspace, { recursive: true }).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  for (const name of ["home", "files"]) {
    await Deno.mkdir(join(workspace, name), { recursive: true });
  }
  await Deno.writeTextFile(join(workspace, "files", "notes.txt"), "one\ntwo\nthree\n");
}

/** Runs the server without PML, in each era that it speaks. */
async function directly(scene: Scene): Promise<ReadonlyMap<Era, Seen>> {
  const seen = new Map<Era, Seen>();
  const problems: string[] = [];
  for (const era of ERAS) {
    try {
      await clean(scene);
      await using connection = await connect(scene.direct, era);
      seen.set(era, await look(scene, connection));
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  if (seen.size === 0) throw new Error(`Does not run directly: ${problems[0]}`);
  return seen;
}

/** Runs the server through PML in each way. */
async function throughAll(
  scene: Scene,
  seen: ReadonlyMap<Era, Seen>,
  tell: (text: string) => void,
): Promise<readonly Compared[]> {
  const runs: Compared[] = [];
  for (const confined of [false, true]) {
    for (const era of ERAS) {
      await clean(scene);
      await define(scene, confined);
      tell(`through PML, ${era}${confined ? ", confined" : ""}`);
      const direct = seen.get(era) ?? seen.get("2025-11-25") ?? seen.get("2026-07-28");
      if (direct === undefined) continue;
      const head = { era, confined, spoken: seen.has(era) };
      runs.push({ ...head, ...await through(scene, { ...head, direct }) });
    }
  }
  return runs;
}

/** Writes the definition of the server into the workspace's file. */
async function define(scene: Scene, confine: boolean): Promise<void> {
  const { listed: { name, package: spec, bin }, version, workspace } = scene;
  const { args, env } = definitionOf(scene);
  const what = `${spec}@${version}`;
  const own = bin === undefined ? ["-y", what] : ["-y", "-p", what, bin];
  const server = { command: "npx", args: [...own, ...args], env };
  const file = {
    version: 1,
    permissions: { allow: [`${name}:*`] },
    gateway: { tools_exposure: "full_proxy" },
    mcpServers: { [name]: { ...server, ...(confine && { confine }) } },
  };
  await Deno.writeTextFile(join(workspace, ".pml.json"), JSON.stringify(file));
}

async function through(
  scene: Scene,
  { era, confined, spoken, direct }: {
    readonly era: Era;
    readonly confined: boolean;
    readonly spoken: boolean;
    readonly direct: Seen;
  },
): Promise<Pick<Compared, "counts" | "differences" | "failed">> {
  const { name } = scene.listed;
  const counts = countsOf(direct);
  try {
    // Installs the package, and returns the reason if the server does not run.
    const listing = pml(scene, ["tools", "--refresh", "--json", name]);
    const { servers: [told] } = JSON.parse(await run(scene.workspace, listing, listing.env));
    // Lists are those of the last time where the server does not start now.
    if (told?.state === "failed") throw new Error(told.why);
    await using connection = await connect(pml(scene, ["stdio"]), era);
    const seen = await look(scene, connection, { server: name, direct: direct.lists });
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

/** Returns the command that starts PML with a separate home and a trusted workspace. */
function pml({ folder, workspace }: Scene, args: readonly string[]): Start {
  const root = new URL("../../", import.meta.url);
  const file = (name: string) => decodeURIComponent(new URL(name, root).pathname);
  return {
    command: Deno.execPath(),
    args: ["run", "-A", "--config", file("deno.json"), file("mod.ts"), ...args],
    cwd: workspace,
    env: {
      ...passed(),
      ...{ PML_HOME: join(folder, "home"), PML_LOG_LEVEL: "error", PML_REGISTRIES: "none" },
      ...{ PML_TRUST: workspace, PML_WORKSPACE: workspace, HOME: Deno.env.get("HOME") ?? folder },
    },
  };
}

/** Reads the lists and makes the calls; of PML only those of one server. */
async function look(
  scene: Scene,
  connection: Connection,
  through?: { readonly server: string; readonly direct: Seen["lists"] },
): Promise<Seen> {
  const readOnce = async (name: ListName) => {
    const list = await connection.list(name) ?? [];
    return through === undefined ? list : entriesOf(list, { server: through.server, name });
  };
  const read = async (name: ListName) => {
    const least = through?.direct[name].length ?? 0;
    let list = await readOnce(name);
    // PML answers with the lists that it knows; those of the server follow.
    // With its tools the server has started.
    const looks = name === "tools" ? LOOKS : LOOKS / 10;
    for (let at = 0; at < looks && list.length < least; at++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      list = await readOnce(name);
    }
    return list;
  };
  const tools = await read("tools");
  if (tools.length === 0 && through !== undefined && through.direct.tools.length > 0) {
    throw new Error("No tool of it was listed in time");
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

function countsOf({ lists, results }: Seen): Compared["counts"] {
  const { tools, prompts, resources, resourceTemplates } = lists;
  return {
    tools: tools.length,
    prompts: prompts.length,
    resources: resources.length,
    resourceTemplates: resourceTemplates.length,
    calls: results.length,
  };
}

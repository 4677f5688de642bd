/**
 * The configuration: everything from outside is read once, validated and frozen.
 *
 * @module
 */

import { dirname, join, relative, sep } from "node:path";
import { asPmlError, type PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { isInside, staysInside } from "../io/place.ts";
import { countingEnvironment } from "./_counting.ts";
import { markUnheld } from "./_unheld.ts";
import { type ConfigProblem, invalidConfig, type Report } from "./_problem.ts";
import { whyWide } from "./_wide.ts";
import type { Environment } from "./env.ts";
import { grantsThatHold } from "./_grants.ts";
import { readWorkspaceFile, type Sections, type WorkspaceFile } from "./file.ts";
import { gatewayFrom, type GatewayOptions } from "./gateway_options.ts";
import type { Others } from "./current_config.ts";
import { type PersonConfig, readPerson } from "./person.ts";
import { askedRegistries, registryProblems } from "./registries.ts";
import { crowdedRules, defaultRules, NO_RULES, type Rules } from "./rules.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import {
  findWorkspace,
  homesOf,
  pathExists,
  realPathOf,
  rulingFiles,
  type Workspace,
} from "./workspace.ts";
import type { Config } from "./current_config.ts";

/** Everything that was read, before it is known whether the workspace file is trusted. */
export interface LoadedConfig {
  /**
   * The environment that PML uses: without the variables that a client's file in the workspace set.
   */
  readonly environment: Environment;
  readonly cwd: string;
  readonly workspace: Workspace;
  /** The reason why there is no workspace, if so. Then `workspace` is the current folder only. */
  readonly lost: PmlError | undefined;
  /**
   * The folder that tools may touch: the root of the workspace, or the part of it that the file
   * names. A real path.
   */
  readonly folder: string;
  readonly file: WorkspaceFile | undefined;
  readonly parents: readonly WorkspaceFile[];
  readonly person: PersonConfig;
  /** The name of the identity that this PML works for; undefined for the user. */
  readonly identity: string | undefined;
  /** Other users of this PML over HTTP, and the restrictions; undefined if there are none. */
  readonly others: Others | undefined;
  /** Whether reading needs a question in this workspace, whatever the rules allow. */
  readonly wide: boolean;
  /** The problem of the configuration, if there is one. Then every call is denied. */
  readonly problem: PmlError | undefined;
  readonly warnings: readonly string[];
}

/** Reads everything. Does not throw for a bad file: the problem is part of the result. */
export async function loadConfig(
  environment: Environment,
  cwd: string,
  identity?: string,
): Promise<LoadedConfig> {
  const counting = countingEnvironment(environment, cwd);
  const { workspace, lost } = await find(counting, cwd);
  // Path checks compare real paths. If the home were a link, the protected folder would be open
  // under its real name.
  const { home, homePath = home } = counting;
  const real = { ...counting, home: realPathOf(home), homePath };
  return await loadFiles({ environment: real, cwd, workspace, lost, identity });
}

/** Reads the files again. The root of the workspace does not change after the start. */
export async function reloadConfig(loaded: LoadedConfig): Promise<LoadedConfig> {
  const { environment, cwd, workspace, lost, identity } = loaded;
  if (lost !== undefined) return await loadConfig(environment, cwd, identity);
  const ruling = rulingFiles(environment, workspace);
  const again = await loadFiles({ ...loaded, workspace: { ...workspace, ...ruling } });
  if (workspace.file === undefined || ruling.file !== undefined) return again;
  const gone = `${quoted(workspace.file, 200)} was removed: the default rules apply`;
  return freeze({ ...again, warnings: [...again.warnings, gone] });
}

/** Returns the current configuration, given whether the user trusts the workspace file. */
export function settle(loaded: LoadedConfig, trusted: boolean): Config {
  const { environment, folder, file, person, warnings } = loaded;
  const believed = trusted ? file : undefined;
  const sections: Partial<Sections> = believed?.sections ?? {};
  const { registries, cloud, grants, intent } = sections;
  const gateway = gatewayFrom(person.gateway, sections.gateway);
  const servers = nearest(believed?.servers ?? [], person.servers);
  const narrowing = loaded.others?.narrowing(sections.gateway?.toolset);
  const problem = loaded.problem ??
    prefixProblem(gateway, { servers: servers.length, file: believed?.path ?? person.path });
  const config: Config = {
    home: environment.home,
    workspace: folder,
    rules: problem === undefined ? rulesThatHold(loaded, trusted) : nothingRuns(loaded),
    servers,
    registries: askedRegistries(environment, registries, person.registries),
    cloud: cloud?.url === undefined ? cloud : { url: hubAddress(cloud.url) },
    grants: grantsThatHold(grants, { person, servers }),
    gateway,
    ...person.settings,
    intent,
    narrowing,
    trusted: believed !== undefined,
    ignored: file === undefined || trusted ? [] : ignoredOf(file),
    problem,
    warnings,
  };
  return freeze(narrowing?.settled(config) ?? config);
}

/** Returns the address of a hub. People also write that of its MCP endpoint, which ends in `/mcp`. */
export function hubAddress(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/mcp$/, "");
}

async function find(
  environment: Environment,
  cwd: string,
): Promise<Pick<LoadedConfig, "workspace" | "lost">> {
  try {
    return { workspace: findWorkspace(environment, cwd), lost: undefined };
  } catch (error) {
    const workspace = environment.workspace === undefined
      ? (await import("./own_folder.ts")).ownFolder(environment, cwd)
      : undefined;
    if (workspace !== undefined) return { workspace, lost: undefined };
    const nowhere = { found: "cwd", file: undefined, parents: [], warning: undefined } as const;
    return { workspace: { root: realPathOf(cwd), ...nowhere }, lost: asPmlError(error) };
  }
}

async function loadFiles(
  from: Pick<LoadedConfig, "environment" | "cwd" | "workspace" | "lost" | "identity">,
): Promise<LoadedConfig> {
  const { environment, cwd, workspace, lost, identity } = from;
  const { root, warning } = workspace;
  const report: Report = {
    problems: [...homeProblems(environment, root), ...registryProblems(environment)],
    warnings: [...environment.warnings, ...(warning === undefined ? [] : [warning])],
  };
  const read = (path: string) => readWorkspaceFile(path, report);
  const file = workspace.file === undefined ? undefined : await read(workspace.file);
  const above = await Promise.all(workspace.parents.map(read));
  const parents = above.filter((parent) => parent !== undefined);
  const { home, userHome } = environment;
  const person = await readPerson(join(home, "config.yaml"), { ...report, userHome });
  // The workspace's own file comes last, so that it is the one that exceeds a limit of all files.
  const files = [person, ...parents.toReversed(), ...(file === undefined ? [] : [file])];
  report.problems.push(...crowdedRules(files));
  const isNamed = person.workspaces.some((path) => realPathOf(path) === root);
  const wide = isNamed ? undefined : whyWide(workspace, environment);
  if (wide !== undefined) report.warnings.push(wideWarning(root, wide));
  const folder = narrowed(root, { file, report });
  const others = await othersOf(person, { identity, file, report, environment });
  return freeze({
    environment,
    cwd,
    workspace,
    lost,
    folder,
    parents,
    ...await markUnheld({ file, person }, { environment, others, folder }),
    identity,
    others,
    wide: wide !== undefined,
    problem: lost ??
      (report.problems.length === 0 ? undefined : invalidConfig(report.problems, report)),
    warnings: report.warnings,
  });
}

/** Reads the restrictions. Their code is loaded only if there are some. */
async function othersOf(
  { others, gateway, path }: PersonConfig,
  from: Pick<LoadedConfig, "identity" | "file" | "environment"> & { readonly report: Report },
): Promise<Others | undefined> {
  const { toolset } = gateway;
  const { identity, file, environment: { policies, policy } } = from;
  const setting = others.identities ?? others.toolsets ?? others.client_toolsets ?? identity ??
    toolset ?? policy ??
    file?.sections.gateway?.toolset;
  if (setting === undefined && !policies.some(pathExists)) return undefined;
  const { openOthers } = await import("./identities.ts");
  return await openOthers(others, { ...from, path, toolset });
}

/**
 * Returns problems with the PML home. It must not lie in the workspace: a workspace with its own
 * PML home would bring its own approvals.
 */
function homeProblems(environment: Environment, root: string): ConfigProblem[] {
  const { home, homePath, homeless } = environment;
  // A workspace that is the home folder, or the whole machine, contains the PML home.
  const isBrought = isInside(root, realPathOf(home)) &&
    !homesOf(environment).some((each) => isInside(root, each));
  const file = "the home of PML";
  const found = homeless ?? (isBrought ? `${quoted(home, 200)}, which lies in the workspace` : "");
  if (found !== "") return [{ file, key: "", found, wanted: "a folder outside the workspace" }];
  const now = homePath && realPathOf(homePath);
  if (homePath === undefined || now === undefined || now === home) return [];
  const moved = `${quoted(homePath, 200)}, which leads to ${quoted(now, 200)} now`;
  return [{ file, key: "", found: moved, wanted: `${quoted(home, 200)}, or a restart of PML` }];
}

function wideWarning(root: string, why: string): string {
  return `Reading needs approval in the workspace ${
    quoted(root, 200)
  }: ${why}. To allow it, write ` +
    `workspaces: [${JSON.stringify(root)}] into your config.yaml`;
}

/** Returns the folder that tools may touch: the root, or the part of it that the file names. */
function narrowed(
  root: string,
  from: { readonly file: WorkspaceFile | undefined; readonly report: Report },
): string {
  const { file, report } = from;
  if (file?.workspace === undefined) return root;
  try {
    const named = join(root, file.workspace);
    const folder = staysInside(root, named) ? Deno.realPathSync(named) : dirname(root);
    const inside = isInside(root, folder) && Deno.statSync(folder).isDirectory;
    // Protected names are below the workspace, so it must not be within `.git`.
    const hidden = relative(root, folder).split(sep).some((name) => name.startsWith("."));
    if (inside && !hidden) return folder;
  } catch {
    // A path that cannot be opened is no folder.
  }
  report.problems.push({
    file: file.path,
    key: "workspace",
    found: quoted(file.workspace, 200),
    wanted: "a folder in the workspace, not in one whose name begins with a dot",
  });
  return root;
}

function rulesThatHold(loaded: LoadedConfig, trusted: boolean): Rules {
  const { file, parents, person } = loaded;
  const [own = NO_RULES, ...above] = [file, ...parents].map((each) =>
    each?.permissions ?? NO_RULES
  );
  const base = trusted && file?.permissions !== undefined ? NO_RULES : defaultRules();
  const all = [base, own, ...above, person.permissions];
  return {
    deny: all.flatMap(({ deny }) => deny),
    ask: [...all.flatMap(({ ask }) => ask), ...(trusted ? [] : own.allow)],
    allow: [...base.allow, ...(trusted ? own.allow : []), ...person.permissions.allow],
  };
}

/** Returns the servers of both lists. If two have the same name, the workspace's is used. */
function nearest(
  own: readonly ServerDefinition[],
  everywhere: readonly ServerDefinition[],
): readonly ServerDefinition[] {
  return [...own, ...everywhere.filter(({ name }) => own.every((each) => each.name !== name))];
}

function nothingRuns({ workspace, person }: LoadedConfig): Rules {
  const source = workspace.file ?? person.path;
  return { ...NO_RULES, deny: [{ pattern: parsePattern("*"), source }] };
}

function ignoredOf({ permissions, servers, sections }: WorkspaceFile): readonly string[] {
  const names = servers.map(({ name }) => name).join(", ");
  const entries = Object.entries(sections).filter(([, value]) => value !== undefined);
  return [
    ...(permissions?.allow.length ? ["allow (asks)"] : []),
    ...(names === "" ? [] : [`servers: ${names}`]),
    ...entries.map(([name]) => name),
  ];
}

/**
 * Returns a problem if names without a prefix are not unique: they need one server alone and no
 * meta-tools.
 */
function prefixProblem(
  gateway: GatewayOptions,
  { servers, file }: { readonly servers: number; readonly file: string },
): PmlError | undefined {
  if (gateway.prefix || gateway.metaTools.length === 0 && servers <= 1) return undefined;
  const found = `false, with ${servers} servers and ${gateway.metaTools.length} meta-tools`;
  const wanted = 'true, or at most one server and [] for "gateway.meta_tools"';
  return invalidConfig([{ file, key: "gateway.prefix", found, wanted }]);
}

/** Freezes plain objects and arrays, with everything in them. */
function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (value instanceof Error) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}

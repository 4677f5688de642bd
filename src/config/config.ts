/**
 * The configuration: everything from outside is read once, validated and frozen.
 *
 * @module
 */

import { dirname, join, relative, sep } from "node:path";
import { asPmlError, type PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import { parsePattern } from "../core/pattern.ts";
import { isInside, realPathOf, staysInside } from "../io/path_info.ts";
import { usedEnvironment } from "./_used_environment.ts";
import { markUnconfined } from "./_unconfined.ts";
import { type ConfigProblem, invalidConfigError, type Report } from "./_problem.ts";
import { whyWide } from "./_wide_workspace.ts";
import type { Environment } from "./env.ts";
import { effectiveGrants } from "./_grants.ts";
import { readWorkspaceFile, type Sections, type WorkspaceFile } from "./file.ts";
import { gatewayFrom, type GatewayOptions } from "./gateway_options.ts";
import type { AccessConfig } from "./current_config.ts";
import { type Pause, readPause } from "./pause.ts";
import { readUserConfig, type UserConfig } from "./user_config.ts";
import { askedRegistries, registryProblems } from "./registries.ts";
import { conditionProblems, defaultRules, NO_RULES, type Rules } from "./rules.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { findWorkspace, homesOf, pathExists, rulingFiles, type Workspace } from "./workspace.ts";
import type { Config } from "./current_config.ts";

/** Everything that was read, before it is known whether the workspace file is trusted. */
export interface LoadedConfig {
  /**
   * The environment that PML uses: without the variables that a client's file in the workspace set.
   */
  readonly environment: Environment;
  readonly cwd: string;
  readonly workspace: Workspace;
  /** The error if no workspace was found. Then `workspace` is only the current folder. */
  readonly workspaceError: PmlError | undefined;
  /**
   * The folder that tools may touch: the root of the workspace, or the part of it that the file
   * names. A real path.
   */
  readonly folder: string;
  readonly file: WorkspaceFile | undefined;
  readonly parents: readonly WorkspaceFile[];
  readonly userConfig: UserConfig;
  /** The name of the identity that this PML works for; undefined for the user. */
  readonly identity: string | undefined;
  /** Other users of this PML over HTTP, and the restrictions; undefined if there are none. */
  readonly access: AccessConfig | undefined;
  /** Whether reading needs a question in this workspace, whatever the rules allow. */
  readonly isWide: boolean;
  /** The pause of the workspace, if the user paused it. */
  readonly pause: Pause | undefined;
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
  const used = usedEnvironment(environment, cwd);
  const { workspace, workspaceError } = await locateWorkspace(used, cwd);
  // Path checks compare real paths. If the home stayed a link, the folder would not be protected
  // under its real path.
  const { home, homePath = home } = used;
  const real = { ...used, home: realPathOf(home), homePath };
  return await loadFiles({ environment: real, cwd, workspace, workspaceError, identity });
}

/** Reads the files again. The root of the workspace does not change after the start. */
export async function reloadConfig(loaded: LoadedConfig): Promise<LoadedConfig> {
  const { environment, cwd, workspace, workspaceError, identity } = loaded;
  if (workspaceError !== undefined) return await loadConfig(environment, cwd, identity);
  const ruling = rulingFiles(environment, workspace);
  const reloaded = await loadFiles({ ...loaded, workspace: { ...workspace, ...ruling } });
  if (workspace.file === undefined || ruling.file !== undefined) return reloaded;
  const warning = `${quoted(workspace.file, 200)} was removed: the default rules apply`;
  return freeze({ ...reloaded, warnings: [...reloaded.warnings, warning] });
}

/** Returns the current configuration, given whether the user trusts the workspace file. */
export function settleConfig(loaded: LoadedConfig, trusted: boolean): Config {
  const { environment, folder, file, userConfig, warnings } = loaded;
  const trustedFile = trusted ? file : undefined;
  const sections: Partial<Sections> = trustedFile?.sections ?? {};
  const { registries, cloud, grants, intent } = sections;
  const gateway = gatewayFrom(userConfig.gateway, sections.gateway);
  const servers = mergeServers(trustedFile?.servers ?? [], userConfig.servers);
  const restrictions = loaded.access?.restrictionsFor(sections.gateway?.toolset);
  const problem = loaded.problem ??
    prefixProblem(gateway, { servers: servers.length, file: trustedFile?.path ?? userConfig.path });
  const config: Config = {
    home: environment.home,
    workspace: folder,
    rules: problem === undefined ? effectiveRules(loaded, trusted) : denyEverything(loaded),
    servers,
    registries: askedRegistries(environment, registries, userConfig.registries),
    cloud: cloud?.url === undefined ? cloud : { url: hubAddress(cloud.url) },
    grants: effectiveGrants(grants, { userConfig, servers }),
    gateway,
    ...userConfig.settings,
    intent,
    restrictions,
    trusted: trustedFile !== undefined,
    ignored: file === undefined || trusted ? [] : ignoredOf(file),
    pause: loaded.pause,
    problem,
    warnings,
  };
  return freeze(restrictions?.applyTo(config) ?? config);
}

/** Returns the address of a hub. Users may also write its MCP endpoint, which ends in `/mcp`. */
export function hubAddress(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/mcp$/, "");
}

async function locateWorkspace(
  environment: Environment,
  cwd: string,
): Promise<Pick<LoadedConfig, "workspace" | "workspaceError">> {
  try {
    return { workspace: findWorkspace(environment, cwd), workspaceError: undefined };
  } catch (error) {
    const workspace = environment.workspace === undefined
      ? (await import("./own_folder.ts")).ownFolder(environment, cwd)
      : undefined;
    if (workspace !== undefined) return { workspace, workspaceError: undefined };
    const unmarked = { found: "cwd", file: undefined, parents: [], warning: undefined } as const;
    return { workspace: { root: realPathOf(cwd), ...unmarked }, workspaceError: asPmlError(error) };
  }
}

async function loadFiles(
  from: Pick<LoadedConfig, "environment" | "cwd" | "workspace" | "workspaceError" | "identity">,
): Promise<LoadedConfig> {
  const { environment, cwd, workspace, workspaceError, identity } = from;
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
  const userConfig = await readUserConfig(join(home, "config.yaml"), { ...report, userHome });
  // The workspace's own file comes last, so that the problem names it if all files together exceed
  // a limit.
  const files = [userConfig, ...parents.toReversed(), ...(file === undefined ? [] : [file])];
  report.problems.push(...conditionProblems(files));
  const isNamed = userConfig.workspaces.some((path) => realPathOf(path) === root);
  const wide = isNamed ? undefined : whyWide(workspace, environment);
  if (wide !== undefined) report.warnings.push(wideWarning(root, wide));
  const folder = toolFolder(root, { file, report });
  const access = await accessConfigOf(userConfig, { identity, file, report, environment });
  return freeze({
    environment,
    cwd,
    workspace,
    workspaceError,
    folder,
    parents,
    ...await markUnconfined({ file, userConfig }, { environment, access, folder }),
    identity,
    access,
    isWide: wide !== undefined,
    pause: await readPause(home, root, report.warnings),
    problem: workspaceError ??
      (report.problems.length === 0 ? undefined : invalidConfigError(report.problems, report)),
    warnings: report.warnings,
  });
}

/** Reads the restrictions. Their code is loaded only if there are some. */
async function accessConfigOf(
  { others, gateway, path }: UserConfig,
  from: Pick<LoadedConfig, "identity" | "file" | "environment"> & { readonly report: Report },
): Promise<AccessConfig | undefined> {
  const { toolset } = gateway;
  const { identity, file, environment: { policies, policy } } = from;
  const setting = others.identities ?? others.toolsets ?? others.client_toolsets ?? identity ??
    toolset ?? policy ??
    file?.sections.gateway?.toolset;
  if (setting === undefined && !policies.some(pathExists)) return undefined;
  const { readAccessConfig } = await import("./identities.ts");
  return await readAccessConfig(others, { ...from, path, toolset });
}

/** The name of the PML home in problems, in place of a file. */
const HOME = "the home of PML";

/** Returns whether a problem is that the PML home must not be used. */
export function refusesHome(problem: PmlError | undefined): boolean {
  const problems = problem?.detail?.problems;
  return Array.isArray(problems) && problems.some((each) => isObject(each) && each.file === HOME);
}

/**
 * Returns problems with the PML home. It must not be in the workspace: a workspace that contains a
 * PML home could contain approvals for itself.
 */
function homeProblems(environment: Environment, root: string): ConfigProblem[] {
  const { home, homePath, homeProblem } = environment;
  // A workspace that is the home folder, or the whole machine, contains the PML home.
  const isInWorkspace = isInside(root, realPathOf(home)) &&
    !homesOf(environment).some((each) => isInside(root, each));
  const file = HOME;
  const found = homeProblem ??
    (isInWorkspace ? `${quoted(home, 200)}, which is in the workspace` : "");
  if (found !== "") return [{ file, key: "", found, wanted: "a folder outside the workspace" }];
  const currentHome = homePath && realPathOf(homePath);
  if (homePath === undefined || currentHome === undefined || currentHome === home) return [];
  const moved = `${quoted(homePath, 200)}, which leads to ${quoted(currentHome, 200)} now`;
  return [{ file, key: "", found: moved, wanted: `${quoted(home, 200)}, or a restart of PML` }];
}

function wideWarning(root: string, why: string): string {
  return `Reading needs approval in the workspace ${
    quoted(root, 200)
  }: ${why}. To allow it, write ` +
    `workspaces: [${JSON.stringify(root)}] into your config.yaml`;
}

/** Returns the folder that tools may touch: the root, or the part of it that the file names. */
function toolFolder(
  root: string,
  from: { readonly file: WorkspaceFile | undefined; readonly report: Report },
): string {
  const { file, report } = from;
  if (file?.workspace === undefined) return root;
  try {
    const named = join(root, file.workspace);
    const folder = staysInside(root, named) ? Deno.realPathSync(named) : dirname(root);
    const isFolderInside = isInside(root, folder) && Deno.statSync(folder).isDirectory;
    // PML protects names such as `.git` only below this folder, so it must not be within `.git`.
    const isHidden = relative(root, folder).split(sep).some((name) => name.startsWith("."));
    if (isFolderInside && !isHidden) return folder;
  } catch {
    // A path that cannot be opened is not a folder.
  }
  report.problems.push({
    file: file.path,
    key: "workspace",
    found: quoted(file.workspace, 200),
    wanted: "a folder in the workspace, not in one whose name begins with a dot",
  });
  return root;
}

function effectiveRules(loaded: LoadedConfig, trusted: boolean): Rules {
  const { file, parents, userConfig } = loaded;
  const [own = NO_RULES, ...above] = [file, ...parents].map((each) =>
    each?.permissions ?? NO_RULES
  );
  const base = trusted && file?.permissions !== undefined ? NO_RULES : defaultRules();
  const all = [base, own, ...above, userConfig.permissions];
  return {
    deny: all.flatMap(({ deny }) => deny),
    ask: [...all.flatMap(({ ask }) => ask), ...(trusted ? [] : own.allow)],
    allow: [...base.allow, ...(trusted ? own.allow : []), ...userConfig.permissions.allow],
  };
}

/** Returns the servers of both files. If two have the same name, the workspace's server is used. */
function mergeServers(
  ofWorkspace: readonly ServerDefinition[],
  ofUser: readonly ServerDefinition[],
): readonly ServerDefinition[] {
  const names = new Set(ofWorkspace.map(({ name }) => name));
  return [...ofWorkspace, ...ofUser.filter(({ name }) => !names.has(name))];
}

function denyEverything({ workspace, userConfig }: LoadedConfig): Rules {
  const source = workspace.file ?? userConfig.path;
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
 * Returns a problem if names of tools without the server's name may not be unique. They certainly
 * are if there is at most one server and no meta-tool.
 */
function prefixProblem(
  gateway: GatewayOptions,
  { servers, file }: { readonly servers: number; readonly file: string },
): PmlError | undefined {
  if (gateway.prefix || gateway.metaTools.length === 0 && servers <= 1) return undefined;
  const found = `false, with ${servers} servers and ${gateway.metaTools.length} meta-tools`;
  const wanted = 'true, or at most one server and [] for "gateway.meta_tools"';
  return invalidConfigError([{ file, key: "gateway.prefix", found, wanted }]);
}

/** Freezes plain objects and arrays, with everything in them. */
function freeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (value instanceof Error) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}

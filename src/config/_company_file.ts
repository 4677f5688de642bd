/**
 * Reads the files of a company's policy. A file that cannot be used stops everything.
 *
 * @module
 */

import { dirname } from "node:path";
import { quoted } from "../core/json.ts";
import { Company, hostOf } from "./company.ts";
import { readDocument } from "./_document.ts";
import type { Problem, Report } from "./_problem.ts";
import { parseYaml } from "./_syntax.ts";
import type { Environment } from "./env.ts";
import { crowdedRules, NO_RULES, type Rules, rulesOf } from "./rules.ts";
import { exists } from "./workspace.ts";

/** What a policy can forbid. */
export const FORBIDDEN = [
  "deno",
  "stdio",
  "http",
  "cloud",
  "registry",
  "container",
  "unconfined",
] as const;

/** A policy that was read. */
export interface PolicyFile {
  readonly path: string;
  /** The hash of its bytes; undefined if it cannot be used. */
  readonly hash: string | undefined;
  /** Its deny and ask rules. */
  readonly rules: Rules;
  /** The kinds of servers that it forbids. */
  readonly forbid: readonly string[];
  /** The only registries that may be asked; undefined for all. */
  readonly registries: readonly string[] | undefined;
  /** The only hosts that may be reached; undefined for all. */
  readonly hosts: readonly string[] | undefined;
}

const MENDS = "Whoever looks after this machine must mend the policy: PML reads it again at once";

/** Returns every path at which a policy is or may be. */
export function policyPaths({ policies, policy }: Environment): readonly string[] {
  return policy === undefined ? policies : [...policies, policy];
}

/** Reads all policies. Returns undefined if there is none. */
export async function readCompany(
  environment: Environment,
  report: Report,
): Promise<Company | undefined> {
  const files: PolicyFile[] = [];
  const problems: Problem[] = [];
  for (const path of policyPaths(environment)) {
    const own: Report = { problems: [], warnings: [] };
    const file = await readPolicy(path, { ...own, isSaid: path === environment.policy });
    if (own.problems.length > 0) files.push({ ...NOTHING, path });
    else if (file !== undefined) files.push(file);
    problems.push(...own.problems);
  }
  problems.push(...crowdedRules(files.map(({ path, rules }) => ({ path, permissions: rules }))));
  report.problems.push(...problems);
  if (problems.length > 0) report.hint = MENDS;
  return files.length === 0 ? undefined : new Company(files);
}

/** Stands for a policy that cannot be used: no server and no address is left. */
const NOTHING: Omit<PolicyFile, "path"> = {
  hash: undefined,
  rules: NO_RULES,
  forbid: FORBIDDEN,
  registries: [],
  hosts: [],
};

async function readPolicy(
  path: string,
  report: Report & { readonly isSaid: boolean },
): Promise<PolicyFile | undefined> {
  const { isSaid, problems } = report;
  if (!exists(path)) {
    // Who names a policy wants one.
    if (isSaid) problems.push({ file: path, key: "", found: "nothing", wanted: "a policy" });
    return undefined;
  }
  const read = await readDocument(path, {
    report,
    parse: parseYaml,
    schema: async (zod) => (await import("./_schema.ts")).policySchema(zod),
  });
  if (read === undefined) return undefined;
  for (const place of [read.realPath, dirname(read.realPath)]) {
    const found = openTo(place, isSaid);
    const wanted = "one that only whoever looks after this machine can change";
    if (found !== undefined) problems.push({ file: path, key: "", found, wanted });
  }
  const { permissions = {}, forbid = [], registries, hosts } = read.said;
  return {
    path,
    hash: read.hash,
    rules: rulesOf(permissions, `the company's policy ${path}`),
    forbid,
    registries,
    hosts: hosts?.map(hostOf),
  };
}

/** Says who else can change a file or a folder; undefined if nobody can. */
function openTo(path: string, isSaid: boolean): string | undefined {
  const { mode, uid, isFile } = Deno.statSync(path);
  // Windows has other rights; whoever sets up the folder decides them.
  if (mode === null || uid === null || Deno.build.os === "windows") return undefined;
  const what = `${quoted(path, 400)}, which`;
  // A folder with the sticky bit keeps what is in it from others.
  const isKept = !isFile && (mode & 0o1000) !== 0;
  if ((mode & 0o022) !== 0 && !isKept) return `${what} others can write`;
  const owners = [0, ...(isSaid ? [Deno.uid()] : [])];
  return owners.includes(uid) ? undefined : `${what} belongs to user ${uid}`;
}

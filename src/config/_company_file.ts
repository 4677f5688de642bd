/**
 * Reads the files of a company's policy. A file that cannot be used stops everything.
 *
 * @module
 */

import { dirname } from "node:path";
import { Company } from "./company.ts";
import { readDocument } from "./_document.ts";
import type { Report } from "./_problem.ts";
import { FORBIDDEN, policySchema } from "./settings.ts";
import { parseYaml } from "./_syntax.ts";
import type { Environment } from "./env.ts";
import { crowdedRules, NO_RULES, rulesOf } from "./rules.ts";
import { pathExists } from "./workspace.ts";
import type { PolicyFile } from "./company.ts";

const OWNED = "a policy that only the administrator of this machine can change";
const MENDS = "The administrator of this machine must correct the policy: PML reads it at once";

/** Returns every path at which a policy is or may be. */
export function policyPaths({ policies, policy }: Environment): readonly string[] {
  return policy === undefined ? policies : [...policies, policy];
}

/** Reads all policies. Returns undefined if there is none. */
export async function readCompany(
  environment: Environment,
  report: Report,
): Promise<Company | undefined> {
  const { problems } = report;
  const before = problems.length;
  const files: PolicyFile[] = [];
  for (const path of policyPaths(environment)) {
    const isSaid = path === environment.policy;
    // A policy that is named must exist.
    if (!pathExists(path) && !isSaid) continue;
    files.push(await readPolicy(path, { report, isSaid }) ?? { ...NOTHING, path });
  }
  problems.push(...crowdedRules(files.map(({ path, rules }) => ({ path, permissions: rules }))));
  if (problems.length > before) report.hint = MENDS;
  return files.length === 0 ? undefined : new Company(files);
}

/** Stands for a policy that cannot be used: no server and no address is left. */
const NOTHING: Omit<PolicyFile, "path"> = {
  hash: undefined,
  rules: NO_RULES,
  policy: { forbid: FORBIDDEN, hosts: [] },
};

async function readPolicy(
  path: string,
  { report, isSaid }: { readonly report: Report; readonly isSaid: boolean },
): Promise<PolicyFile | undefined> {
  const own: Report = { ...report, problems: [] };
  const read = await readDocument(path, {
    report: own,
    parse: parseYaml,
    schema: policySchema,
  });
  const { problems } = own;
  const open = read && [read.realPath, dirname(read.realPath)].find((at) => isOpen(at, isSaid));
  const problem = read === undefined ? "no file" : open && `${open}, which others can change`;
  if (problem && problems.length === 0) {
    problems.push({ file: path, key: "", found: problem, wanted: OWNED });
  }
  report.problems.push(...problems);
  if (read === undefined || problems.length > 0) return undefined;
  const { hash, content } = read;
  return {
    path,
    hash,
    policy: content,
    rules: rulesOf(content.permissions ?? {}, `the company's policy ${path}`),
  };
}

/** Returns whether another user can change a file or a folder. */
function isOpen(path: string, isSaid: boolean): boolean {
  const { mode, uid, isFile } = Deno.statSync(path);
  // Windows has other access rights, which the operator of the folder sets.
  if (uid === null) return false;
  const owners = [0, ...(isSaid ? [Deno.uid()] : [])];
  // A folder with the sticky bit protects its content from other users.
  const isKept = !isFile && ((mode ?? 0) & 0o1000) !== 0;
  return !owners.includes(uid) || ((mode ?? 0) & 0o022) !== 0 && !isKept;
}

/**
 * Reads the files of a company's policy. If a file cannot be used, PML forbids everything.
 *
 * @module
 */

import { dirname } from "node:path";
import { Company } from "./company.ts";
import { DocumentReader } from "./_document.ts";
import type { Report } from "./_problem.ts";
import { FORBIDDEN, policySchema } from "./settings.ts";
import { parseYaml } from "./_syntax.ts";
import type { Environment } from "./env.ts";
import { conditionProblems, NO_RULES, rulesOf } from "./rules.ts";
import { pathExists } from "./workspace.ts";
import type { PolicyFile } from "./company.ts";

const WANTED = "a policy that only the administrator of this machine can change";
const HINT =
  "The administrator of this machine must correct the policy: PML then reads it without a restart";

/** Returns every path at which a policy may exist. */
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
    const isNamed = path === environment.policy;
    // A policy that `PML_POLICY` names must exist.
    if (!pathExists(path) && !isNamed) continue;
    files.push(await readPolicy(path, { report, isNamed }) ?? { ...UNUSABLE, path });
  }
  problems.push(
    ...conditionProblems(files.map(({ path, rules }) => ({ path, permissions: rules }))),
  );
  if (problems.length > before) report.hint = HINT;
  return files.length === 0 ? undefined : new Company(files);
}

/** Replaces a policy that cannot be used: it forbids every server and every address. */
const UNUSABLE: Omit<PolicyFile, "path"> = {
  hash: undefined,
  rules: NO_RULES,
  policy: { forbid: FORBIDDEN, hosts: [] },
};

async function readPolicy(
  path: string,
  { report, isNamed }: { readonly report: Report; readonly isNamed: boolean },
): Promise<PolicyFile | undefined> {
  const fileReport: Report = { ...report, problems: [] };
  const document = await new DocumentReader(parseYaml, fileReport).read(path, policySchema);
  const { problems } = fileReport;
  const unsafePath = document && [document.realPath, dirname(document.realPath)]
    .find((path) => canOthersChange(path, isNamed));
  const problem = document === undefined
    ? "no file"
    : unsafePath && `${unsafePath}, which others can change`;
  if (problem && problems.length === 0) {
    problems.push({ file: path, key: "", found: problem, wanted: WANTED });
  }
  report.problems.push(...problems);
  if (document === undefined || problems.length > 0) return undefined;
  const { hash, content } = document;
  return {
    path,
    hash,
    policy: content,
    rules: rulesOf(content.permissions ?? {}, `the company's policy ${path}`),
  };
}

/** Returns whether a user who must not change the policy can change a file or a folder. */
function canOthersChange(path: string, isNamed: boolean): boolean {
  const { mode, uid, isFile } = Deno.statSync(path);
  // Windows has no such modes: the access rights of the folder protect the policy there.
  if (uid === null) return false;
  // A policy that `PML_POLICY` names may belong to the user of PML.
  const owners = [0, ...(isNamed ? [Deno.uid()] : [])];
  // A folder with the sticky bit protects its content from other users.
  const isSticky = !isFile && ((mode ?? 0) & 0o1000) !== 0;
  return !owners.includes(uid) || ((mode ?? 0) & 0o022) !== 0 && !isSticky;
}

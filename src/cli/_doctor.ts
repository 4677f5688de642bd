/**
 * `pml doctor`: looks whether everything works, and says what to do where it does not.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app.ts";
import { visible } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { visit } from "./_house.ts";
import { print, printJson } from "./out.ts";

/** One finding; `hint` says what to do, or what could be done. */
interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly said: string;
  readonly hint?: string;
}

/** Older ones have holes in their permissions. */
const DENO_FLOOR = [2, 9, 6] as const;

/** Looks at everything; 1 where something is broken. */
export async function doctor({ json = false }: { readonly json?: boolean }): Promise<number> {
  return await visit(async ({ app }) => {
    const findings = [
      denoFinding(Deno.version.deno),
      workspaceFinding(app),
      await homeFinding(app.config().home),
      ...configFindings(app),
      await trustFinding(app),
      ...await serverFindings(app),
      ...await app.checks(),
      await keyFinding(app),
    ];
    const ok = findings.every((finding) => finding.ok);
    if (json) printJson({ version: VERSION, ok, findings });
    else print([`PML ${VERSION}`, ...findings.map(findingText)].join("\n"));
    return ok ? 0 : 1;
  }, { broken: true });
}

/** Says whether a version of Deno is new enough. */
export function denoFinding(version: string): Finding {
  const found = version.split(/[.+-]/).slice(0, 3).map(Number);
  const floor = DENO_FLOOR.join(".");
  const differs = DENO_FLOOR.findIndex((part, at) => found[at] !== part);
  const ok = differs < 0 || (found[differs] ?? 0) > (DENO_FLOOR[differs] ?? 0);
  if (ok) return { name: "deno", ok, said: version };
  return {
    name: "deno",
    ok,
    said: `${version} is too old`,
    hint: `Install Deno ${floor} or newer`,
  };
}

function workspaceFinding(app: App): Finding {
  const { workspace, lost } = app.loaded();
  const { root, found } = workspace;
  const name = "workspace";
  if (lost) return { name, ok: false, said: "there is none", hint: "Start PML in a project" };
  const said = `${app.config().workspace}, because of ${found}`;
  if (found !== "cwd") return { name, ok: true, said };
  const hint = `Run \`pml init\` there, or set PML_WORKSPACE, if ${root} is not meant`;
  return { name, ok: true, said: `${root}, the current folder`, hint };
}

async function homeFinding(home: string): Promise<Finding> {
  const name = "home";
  try {
    const { isDirectory, mode } = await Deno.stat(home);
    if (!isDirectory) {
      return { name, ok: false, said: `${home} is not a folder`, hint: "Remove it" };
    }
    const open = ((mode ?? 0) & 0o077) !== 0 && Deno.build.os !== "windows";
    if (!open) return { name, ok: true, said: home };
    const said = `${home} is open to other people on this machine`;
    return { name, ok: false, said, hint: `Run \`chmod 700 ${JSON.stringify(home)}\`` };
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      return { name, ok: true, said: `${home} is made when it is needed` };
    }
    const said = `${home} cannot be read: ${error instanceof Error ? error.message : error}`;
    return { name, ok: false, said, hint: "Make it yours, or set PML_HOME" };
  }
}

function configFindings(app: App): readonly Finding[] {
  const { problem, warnings } = app.config();
  const { file } = app.loaded().workspace;
  const warned = warnings.map((said) => ({ name: "configuration", ok: true, said }));
  if (problem === undefined) {
    const said = file === undefined
      ? "no workspace file: the default rules hold"
      : `${file} is good`;
    return [{ name: "configuration", ok: true, said }, ...warned];
  }
  const { message, hint } = problem;
  return [
    { name: "configuration", ok: false, said: message, ...(hint === undefined ? {} : { hint }) },
    ...warned,
  ];
}

async function trustFinding(app: App): Promise<Finding> {
  const name = "trust";
  const open = await app.untrusted();
  if (open === undefined) return { name, ok: true, said: "nothing waits to be trusted" };
  const said = `not trusted yet: ${open.facts.length} facts to look at`;
  return { name, ok: true, said, hint: "Look at them with `pml trust`" };
}

async function serverFindings(app: App): Promise<readonly Finding[]> {
  if (app.config().problem !== undefined) return [];
  await app.servers.prepare();
  return app.servers.states().map(({ name, state, why, tools, origin }) => ({
    name: `server ${name}`,
    ok: state !== "failed",
    said: `${state}${why === undefined ? `, ${tools} tools, ${origin}` : `: ${visible(why, 400)}`}`,
    ...(state === "failed" ? { hint: "Mend its entry in the workspace file" } : {}),
  }));
}

/** Says whether there is a key, and never which. */
async function keyFinding(app: App): Promise<Finding> {
  const name = "key";
  if (app.loaded().environment.apiKey !== undefined) {
    return { name, ok: true, said: "PML_API_KEY is set" };
  }
  const path = join(app.config().home, "api_key");
  const found = await Deno.lstat(path).catch(() => undefined);
  if (found === undefined) {
    const said = "PML_API_KEY is not set: local tools only";
    return { name, ok: true, said, hint: "Set PML_API_KEY, or run `pml init`, for cloud tools" };
  }
  const open = ((found.mode ?? 0) & 0o077) !== 0 && Deno.build.os !== "windows";
  if (!open) return { name, ok: true, said: `the key file ${path} is there` };
  const hint = `Run \`chmod 600 ${JSON.stringify(path)}\``;
  return { name, ok: false, said: `the key file ${path} is open to other people`, hint };
}

function findingText({ name, ok, said, hint }: Finding): string {
  const head = `${ok ? "ok  " : "FAIL"} ${name}: ${said}`;
  return hint === undefined ? head : `${head}\n     ${hint}`;
}

/**
 * `pml doctor`: checks whether everything works, and says what to do if it does not.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { costsOf } from "../app/costs.ts";
import { KEY_FILE } from "../config/keys.ts";
import { type WantedKey, wantedKeys } from "../config/wanted_keys.ts";
import { exists } from "../config/workspace.ts";
import { type Check, check } from "../core/check.ts";
import { PmlError } from "../core/errors.ts";
import { inset, isObject, visible } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import { networkValues, policyValues } from "./_config_values.ts";
import { MANY_TOKENS } from "./_cost.ts";
import { refused } from "./_files.ts";
import { signInText } from "./_login.ts";
import { type CommandContext, prepare, type Shown } from "./_command_context.ts";

/** Runs all checks. The exit code is 1 if one failed. */
export async function doctor(at: CommandContext): Promise<Shown> {
  const { app } = at;
  const { home, workspace, problem, warnings } = app.config();
  const { found, file } = app.loaded().workspace;
  const because = found === "cwd" ? "the current folder" : `because of ${found}`;
  const read = () => problem === undefined ? Promise.resolve() : Promise.reject(problem);
  const usable = await check("home", home, () => mustBeUsable(home, problem));
  const findings = [
    { name: "workspace", ok: true, said: `${workspace}, ${because}` },
    usable.ok ? await check("home", home, () => mustBePrivate(home, "700")) : usable,
    await check("configuration", file ?? "no workspace file, so the default rules hold", read),
    ...policyValues(app).map(({ key: name, value, from }) => ({
      name,
      ok: true,
      said: `${JSON.stringify(value)}, in ${from}`,
    })),
    ...warnings.map((said) => ({ name: "warning", ok: true, said })),
    // Everything else is kept in the home, and nothing is written into a home that was refused.
    ...(usable.ok ? await rest(at) : []),
  ];
  const ok = findings.every((finding) => finding.ok);
  const deno = Deno.version.deno;
  return {
    value: { version: VERSION, deno, ok, findings, keys: keysFound(app) },
    text: [`PML ${VERSION} on Deno ${deno}`, ...findings.map(textOf)].join("\n"),
    code: ok ? 0 : 1,
  };
}

async function rest(at: CommandContext): Promise<readonly Check[]> {
  const { app } = at;
  return [
    await trust(app),
    await lock(app),
    ...networkValues(app).map(({ key: name, value }) => ({ name, ok: true, said: `${value}` })),
    ...await servers(at),
    ...await signIns(app),
    await context(app),
    ...await registries(app),
    await (await app.finder()).check(),
    ...await (await app.callPath()).checks(),
    await key(app),
    ...keysFound(app).map(keyCheck),
  ];
}

/** A wanted key and where it is set, but never its value. */
type KeyFound = WantedKey & { readonly from: string | undefined };

function keysFound(app: App): readonly KeyFound[] {
  return wantedKeys(app.config(), app.registryKeys()).map((wanted) => ({
    ...wanted,
    from: app.keys.find(wanted.name)?.from,
  }));
}

function keyCheck({ name, by, isRequired, from }: KeyFound): Check {
  const said = from === undefined ? "not set" : `set, in ${from}`;
  return {
    name: `key ${visible(name)}`,
    ok: from !== undefined || !isRequired,
    said: `wanted by ${by.map((each) => visible(each)).join(", ")}: ${said}`,
    ...(from === undefined
      ? { hint: "Set it in the environment that starts pml, or in .env of a trusted workspace" }
      : {}),
  };
}

/**
 * Returns what is known of each registry. No registry is asked, so one that is down is no failure.
 */
async function registries(app: App): Promise<readonly Check[]> {
  if (app.config().registries.length === 0) {
    return [{ name: "registry", ok: true, said: "none is configured" }];
  }
  return (await app.registries()).lookup.known().map(({ url, servers }) => ({
    name: `registry ${url}`,
    ok: true,
    said: servers === 0
      ? "its servers are not known yet; `pml tools --refresh` asks for them"
      : `${servers} of its servers ${servers === 1 ? "is" : "are"} known`,
  }));
}

/** Returns whether there is a key for the cloud, but never its value. */
async function key(app: App): Promise<Check> {
  const path = join(app.config().home, KEY_FILE);
  let said = "there is none, so only local tools work; `pml init` asks for one";
  const found = await check("key", said, async () => {
    await mustBePrivate(path, "600");
    const from = app.keys.cloud()?.from;
    if (from === "the environment") said = "PML_API_KEY is set";
    if (from === "the key file") said = `it is kept in ${path}`;
  });
  return found.ok ? { ...found, said } : found;
}

async function mustBeUsable(home: string, problem: PmlError | undefined): Promise<void> {
  if (refusesHome(problem)) throw problem;
  try {
    await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw refused(home, error);
  }
}

function refusesHome(problem: PmlError | undefined): boolean {
  const problems = problem?.detail?.problems;
  return Array.isArray(problems) &&
    problems.some((each) => isObject(each) && each.file === "PML_HOME");
}

async function mustBePrivate(path: string, mode: "600" | "700"): Promise<void> {
  const found = await Deno.stat(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw refused(path, error);
  });
  if (Deno.build.os === "windows" || ((found?.mode ?? 0) & 0o077) === 0) return;
  throw new PmlError("CONFIG_INVALID", `${path} is open to other people on this machine`, {
    hint: `Run \`chmod ${mode} ${JSON.stringify(path)}\``,
  });
}

/**
 * A file that still waits for trust passes the check; a file that cannot be trusted at all fails
 * it.
 */
async function trust(app: App): Promise<Check> {
  let waits = false;
  const found = await check("trust", "nothing waits to be trusted", async () => {
    waits = await app.policy.unapproved() !== undefined;
  });
  return waits ? { ...found, said: "not trusted yet", hint: "Look at it with `pml trust`" } : found;
}

async function lock(app: App): Promise<Check> {
  const pins = await app.pins();
  const said = exists(pins.path)
    ? pins.path
    : "there is none yet: the first call of a server makes it";
  return await check("lock", said, async () => void await pins.state());
}

async function servers(at: CommandContext): Promise<readonly Check[]> {
  const { app } = at;
  if (app.config().problem !== undefined) return [];
  await prepare(at, undefined, { isWhole: true });
  return app.servers.states().map(({ name, state, why, tools, origin }) => ({
    name: `server ${name}`,
    ok: state !== "failed",
    said: `${origin}, ${state}: ${why === undefined ? `${tools} tools` : inset(why, 400)}`,
  }));
}

/** Returns where the person is signed in. */
async function signIns(app: App): Promise<readonly Check[]> {
  const { machine } = await app.callPath();
  return (await (await machine.signIns()).all()).map((one) => {
    const { server, until = Infinity, isRenewed } = one;
    const ok = isRenewed || until > Date.now();
    const said = ok ? signInText(one) : `expired: ${signInText(one)}`;
    return {
      name: `sign-in ${server}`,
      ok,
      said,
      ...(!ok && { hint: `Run \`pml login ${server}\`` }),
    };
  });
}

/** This many searches are enough for an estimate. */
const SEARCHES = 10;

/** Estimates what a list and a search cost a client. */
async function context(app: App): Promise<Check> {
  const { problem, gateway } = app.config();
  const name = "context";
  if (problem !== undefined) return { name, ok: true, said: "nothing is listed to count" };
  const costs = costsOf(app);
  const { tools, tokens } = await costs.list(gateway);
  const { median } = await costs.search(SEARCHES);
  const said =
    `${gateway.exposure} lists ${tools} tools, about ${tokens} tokens; a search answers ` +
    `about ${median} (estimates)`;
  return {
    name,
    ok: true,
    said,
    ...(tokens > MANY_TOKENS && { hint: "See `pml config --wizard`" }),
  };
}

function textOf({ name, ok, said, hint }: Check): string {
  return `${ok ? "ok  " : "FAIL"} ${name}: ${said}${hint === undefined ? "" : `\n     ${hint}`}`;
}

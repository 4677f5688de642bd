/**
 * `pml doctor`: checks the installation, and prints a hint for each problem.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { clientsThatCannotAsk } from "../app/seen_clients.ts";
import { Costs } from "./costs.ts";
import { KEY_FILE } from "../config/keys.ts";
import { type WantedKey, wantedKeys } from "../config/wanted_keys.ts";
import { REPLACES } from "../config/shown.ts";
import { pathExists } from "../config/workspace.ts";
import { type CheckReport, runCheck } from "../core/check.ts";
import { counted } from "../core/amounts.ts";
import { keyHint, messageOf, PmlError } from "../core/errors.ts";
import { defined, inset, isObject, visible } from "../core/json.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { isSkillPin } from "../protocol/skills.ts";
import { VERSION } from "../core/version.ts";
import { isSharedMode } from "../io/private_files.ts";
import { unresponsiveServers } from "../io/unresponsive_servers.ts";
import { networkValues, policyValues } from "./_config_values.ts";
import { MANY_TOKENS } from "./_cost.ts";
import { fileNotChanged } from "./_files.ts";
import { clientStates } from "./_client_setup.ts";
import { paintReport } from "./_paint.ts";
import { signInText } from "./_login.ts";
import { type CommandContext, prepare, type Shown } from "./_command_context.ts";
import { trustState } from "./_trust.ts";
import { unmetRules } from "./_unmet_rules.ts";

/** Runs all checks. The exit code is 1 if one failed. */
export async function doctor(at: CommandContext): Promise<Shown> {
  const { app } = at;
  const { home, workspace, problem, warnings } = app.config();
  const { lost, workspace: { found, file } } = app.loaded();
  const because = found === "cwd"
    ? "the current folder"
    : found === "default"
    ? "PML's own folder"
    : `because of ${found}`;
  const read = () => {
    if (problem !== undefined && problem !== lost) throw problem;
  };
  const usable = await runCheck("home", home, () => mustBeUsable(home, problem));
  const findings = [
    await runCheck("workspace", `${workspace}, ${because}`, () => {
      if (lost !== undefined) throw lost;
    }),
    usable.ok ? await runCheck("home", home, () => mustBePrivate(home, "700")) : usable,
    ...(usable.ok && Deno.build.os === "windows" ? await sharedHome(app) : []),
    await runCheck("configuration", file ?? "no workspace file, so the default rules apply", read),
    ...policyValues(app).map(({ key, value, from }) =>
      well(key, `${JSON.stringify(value)}, in ${from}`)
    ),
    ...warnings.map((warning) => warned("configuration", warning)),
    // Everything else is kept in the home, and nothing is written into a home that was refused.
    ...(usable.ok ? await rest(at) : []),
  ];
  const ok = findings.every((finding) => finding.ok);
  const deno = Deno.version.deno;
  return {
    value: { version: VERSION, deno, ok, findings, keys: keysFound(app) },
    text: [`PML ${VERSION} on Deno ${deno}`, ...findings.map(textOf)].join("\n"),
    paint: paintReport,
    code: ok ? 0 : 1,
  };
}

async function rest(at: CommandContext): Promise<readonly CheckReport[]> {
  const { app } = at;
  await app.keys.looked();
  return [
    await trust(app),
    await lock(app),
    watching(app),
    ...networkValues(app).map(({ key, value }) => well(key, `${value}`)),
    ...await servers(at),
    ...unmetRules(app).map(({ said }) => warned("rule", said)),
    ...await clients(app),
    ...clientsWithoutQuestions(app),
    ...await signIns(app),
    await context(app),
    ...await registries(at),
    await (await app.finder()).check(),
    ...await (await app.callPath()).checks(),
    await key(app),
    ...keysFound(app).map(keyCheck),
  ];
}

/** A wanted key and where it is set, but never its value. */
type KeyFound = WantedKey & { readonly from: string | undefined };

function keysFound(app: App): readonly KeyFound[] {
  return wantedKeys(app.config(), app.registryKeys()).map((key) => ({
    ...key,
    from: app.keys.find(key.name)?.from,
  }));
}

function keyCheck({ name, by, isRequired, from }: KeyFound): CheckReport {
  const place = from === undefined ? "not set" : `set, in ${from}`;
  return {
    name: `key ${visible(name)}`,
    ok: from !== undefined || !isRequired,
    message: `needed by ${by.map((each) => visible(each)).join(", ")}: ${place}`,
    ...(from === undefined && {
      hint: keyHint(visible(name)),
    }),
  };
}

/** Checks each registry. An unreachable one is no failure: cached entries still work. */
async function registries({ app, signal }: CommandContext): Promise<readonly CheckReport[]> {
  if (app.config().registries.length === 0) {
    return [well("registry", "none is configured")];
  }
  const tried = await (await app.registries()).lookup.tried(signal);
  return tried.map(({ url, servers, error }) => {
    const summary = `${servers} of its servers ${servers === 1 ? "is" : "are"} known`;
    const name = `registry ${url}`;
    return error === undefined
      ? well(name, summary)
      : warned(name, `${error.message}; ${summary}`, error.hint);
  });
}

/** Returns whether there is a key for the cloud, but never its value. */
async function key(app: App): Promise<CheckReport> {
  const path = join(app.config().home, KEY_FILE);
  return await runCheck("key", "none (only cloud tools need one)", async () => {
    await mustBePrivate(path, "600");
    const from = app.keys.cloud()?.from;
    if (from === "the environment") return "PML_API_KEY is set";
    return from === "the key file" ? `it is kept in ${path}` : undefined;
  });
}

async function mustBeUsable(home: string, problem: PmlError | undefined): Promise<void> {
  if (refusesHome(problem)) throw problem;
  try {
    await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileNotChanged(home, error);
  }
}

/** Warns about a home on Windows whose access list lets other people in, or cannot be read. */
async function sharedHome(app: App): Promise<readonly CheckReport[]> {
  const { AccessLists } = await import("../policy/access_list.ts");
  const { home } = app.config();
  const why = await AccessLists.of(app.loaded().environment).whyShared(home);
  if (why === undefined) return [];
  const hint = "Set PML_HOME to a folder below %USERPROFILE%, or run `icacls " +
    `"${home}" /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F"\``;
  return [warned("home", `other people on this machine may read it: ${why}`, hint)];
}

function refusesHome(problem: PmlError | undefined): boolean {
  const problems = problem?.detail?.problems;
  return Array.isArray(problems) &&
    problems.some((each) => isObject(each) && each.file === "the home of PML");
}

async function mustBePrivate(path: string, mode: "600" | "700"): Promise<void> {
  const info = await Deno.stat(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw fileNotChanged(path, error);
  });
  if (!info || !isSharedMode(info)) return;
  throw new PmlError("CONFIG_INVALID", `${path} is open to other people on this machine`, {
    hint: `Run \`chmod ${mode} ${JSON.stringify(path)}\``,
  });
}

/**
 * A file that still waits for trust passes the check; a file that cannot be trusted at all fails
 * it.
 */
async function trust(app: App): Promise<CheckReport> {
  let state: Awaited<ReturnType<typeof trustState>>;
  const report = await runCheck("trust", "nothing waits to be trusted", async () => {
    state = await trustState(app);
  });
  return state?.isOpen ? warned("trust", state.text, "Look at it with `pml trust`") : report;
}

/** Tries to watch a folder, because the system limits how many are watched. */
function watching(app: App): CheckReport {
  try {
    Deno.watchFs(app.config().home, { recursive: false }).close();
    return well("watching", "a change of the configuration applies at once");
  } catch (error) {
    return warned(
      "watching",
      `Cannot watch files: ${messageOf(error)}; a change applies with the next call`,
      "Raise the limits fs.inotify.max_user_instances and fs.inotify.max_user_watches",
    );
  }
}

async function lock(app: App): Promise<CheckReport> {
  const pins = await app.pins();
  const text = pathExists(pins.path) ? pins.path : "there is none yet";
  return await runCheck("lock", text, async () => void await pins.state());
}

async function servers(at: CommandContext): Promise<readonly CheckReport[]> {
  const { app } = at;
  if (app.config().problem !== undefined) return [];
  // A list that is kept does not tell whether its server still works.
  app.servers.lists.forget();
  await prepare(at, undefined, { isWhole: true });
  const replaced = app.servers.states()
    .filter(({ name }) => !app.directory.at(name).origin.isShipped && app.builtins.has(name))
    .map(({ name }) => warned(`server ${name}`, `your own definition ${REPLACES}`));
  const changed = app.servers.states().flatMap(({ name, changed = [] }) =>
    changed.map((tool) =>
      warned(
        changedName(name, tool),
        "changed, not approved",
        `Look at the change with \`pml lock update ${name}\``,
      )
    )
  );
  const silent = unresponsiveServers(app.config().home).map(({ server, pid, since }) =>
    warned(
      `server ${visible(server)}`,
      `has not answered the PML of process ${pid} since ${new Date(since).toISOString()}`,
      `It may be busy; \`pml logs ${visible(server)}\` shows what it wrote`,
    )
  );
  const states = app.servers.states().map(({ name, state, why, tools, origin }) => ({
    name: `server ${name}`,
    ok: state !== "failed",
    ...(state === "blocked" && { warns: true }),
    message: `${origin}, ${state}: ${why === undefined ? counted(tools, "tool") : inset(why, 400)}`,
    ...(state === "failed" && { hint: `\`pml tools ${name}\` shows what to do` }),
  }));
  return [...replaced, ...states, ...silent, ...changed];
}

/** Checks which clients start PML, and which start servers themselves. */
async function clients(app: App): Promise<readonly CheckReport[]> {
  return (await clientStates(app)).map(({ client, startsPml, others, imported }): CheckReport => {
    const name = `client ${client}`;
    if (others.length === 0) return well(name, "starts PML");
    const text = `starts ${startsPml ? "PML, and past it" : "past PML"}: ${others.join(", ")}`;
    const connect = startsPml ? "" : `\`pml init --client ${client}\` connects it; `;
    const also = imported.length === 0 ? "" : `; PML has ${imported.join(", ")}, too`;
    const hint = `${connect}\`pml import ${client} --move\` takes them into PML, and out of there`;
    return warned(name, text + also, hint);
  });
}

/** Returns the clients that used PML and cannot show its questions. */
function clientsWithoutQuestions(app: App): readonly CheckReport[] {
  return clientsThatCannotAsk(app.config().home).map(({ name, version, seen }) =>
    warned(
      `client ${`${name} ${version}`.trim()}`,
      `cannot show PML's questions; seen ${new Date(seen).toISOString().slice(0, 10)}`,
      "Answer them on a terminal: `pml approve --watch` stays open and shows each new one",
    )
  );
}

/** Returns where the user is signed in. */
async function signIns(app: App): Promise<readonly CheckReport[]> {
  const { machine } = await app.callPath();
  return (await (await machine.signIns()).all()).map((one) => {
    const { server, until = Infinity, isRenewed } = one;
    const ok = isRenewed || until > Date.now();
    const text = ok ? signInText(one) : `expired: ${signInText(one)}`;
    return {
      name: `sign-in ${server}`,
      ok,
      message: text,
      ...(!ok && { hint: `Run \`pml login ${server}\`` }),
    };
  });
}

/** This many searches are enough for an estimate. */
const SEARCHES = 10;

/** Estimates the tokens of a list and a search. */
async function context(app: App): Promise<CheckReport> {
  const { problem, gateway } = app.config();
  const name = "context";
  if (problem !== undefined) return well(name, "nothing is listed to count");
  const costs = new Costs(app);
  const { tools, tokens } = await costs.list(gateway);
  const { median } = await costs.search(SEARCHES);
  const text =
    `${gateway.exposure} lists ${tools} tools, about ${tokens} tokens; a search answers ` +
    `about ${median} (estimates)`;
  return {
    ...well(name, text),
    ...(tokens > MANY_TOKENS && { hint: "See `pml config --wizard`" }),
  };
}

/** Returns a tool, a skill or the instructions of a server, which changed. */
function changedName(server: string, name: string): string {
  if (name === INSTRUCTIONS) return `instructions of ${server}`;
  return isSkillPin(name)
    ? `skill ${visible(name.slice("@skill(".length, -1))} of ${server}`
    : `tool ${server}:${visible(name)}`;
}

function well(name: string, text: string): CheckReport {
  return { name, ok: true, message: text };
}

function warned(name: string, text: string, hint?: string): CheckReport {
  return { ...well(name, text), warns: true, ...defined({ hint }) };
}

function textOf({ name, ok, warns = false, message, hint }: CheckReport): string {
  const mark = ok ? warns ? "warn" : "ok  " : "FAIL";
  return `${mark} ${name}: ${message}${hint === undefined ? "" : `\n     ${hint}`}`;
}

/**
 * `pml doctor`: checks the installation, and prints a hint for each problem.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { clientsThatCannotAsk } from "../gateway/seen_clients.ts";
import { Costs } from "./costs.ts";
import { refusesHome } from "../config/config.ts";
import { CLOUD_KEY_FILE } from "../config/keys.ts";
import { OTLP } from "../config/network_names.ts";
import type { Pause } from "../config/pause.ts";
import { type WantedKey, wantedKeys } from "../config/wanted_keys.ts";
import { REPLACES } from "../config/workspace_lines.ts";
import { pathExists } from "../config/workspace.ts";
import { type CheckReport, runCheck } from "../core/check.ts";
import { counted } from "../core/amounts.ts";
import { keyHint, messageOf, PmlError } from "../core/errors.ts";
import { indentLines, visible, withoutUndefined } from "../core/json.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { isSkillPin } from "../protocol/skills.ts";
import { VERSION } from "../core/version.ts";
import { isSharedMode } from "../io/private_files.ts";
import { unresponsiveServers } from "../io/unresponsive_servers.ts";
import { networkValues, policyValues } from "./_config_values.ts";
import { MANY_TOKENS } from "./_cost.ts";
import { fileNotChanged } from "./_files.ts";
import { withAction } from "./_find.ts";
import { readClientStates } from "./_client_setup.ts";
import { paintReport } from "./_paint.ts";
import { signInText } from "./_login.ts";
import { missingLockText } from "./_lock.ts";
import { hasLog } from "./_logs.ts";
import {
  type CommandContext,
  type CommandOutput,
  prepare,
  withWaitLine,
} from "./_command_context.ts";
import { pauseText } from "./_pause.ts";
import { trustState } from "./_trust.ts";
import { unmetRules } from "./_unmet_rules.ts";

/** Runs all checks. The exit code is 1 if one failed. */
export async function doctor(context: CommandContext): Promise<CommandOutput> {
  const { app } = context;
  const { home, workspace, problem, warnings, pause } = app.config();
  const { workspaceError, workspace: { found, file } } = app.loaded();
  const reason = found === "cwd"
    ? "the current folder"
    : found === "default"
    ? "PML's own folder"
    : `because of ${found}`;
  const assertValidConfig = () => {
    if (problem !== undefined && problem !== workspaceError) throw problem;
  };
  const homeReport = await runCheck("home", home, () => assertUsable(home, problem));
  const findings = [
    await runCheck("workspace", `${workspace}, ${reason}`, () => {
      if (workspaceError !== undefined) throw workspaceError;
    }),
    homeReport.ok ? await runCheck("home", home, () => assertPrivate(home, "700")) : homeReport,
    ...(homeReport.ok && Deno.build.os === "windows" ? await checkAccessList(app) : []),
    await runCheck(
      "configuration",
      file ?? "no workspace file, so the default rules apply",
      assertValidConfig,
    ),
    ...policyValues(app).map(({ key, value, from }) =>
      okReport(key, `${JSON.stringify(value)}, in ${from}`)
    ),
    ...warnings.map((warning) => warningReport("configuration", warning)),
    ...pause === undefined ? [] : [pauseReport(pause)],
    // All other checks use the home, and PML writes nothing into a home that it refuses.
    ...(homeReport.ok ? await checkAll(context) : []),
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

function pauseReport(pause: Pause): CheckReport {
  return warningReport("pause", pauseText(pause), "`pml resume` ends the pause");
}

/** Runs the checks that need a usable home. */
async function checkAll(context: CommandContext): Promise<readonly CheckReport[]> {
  const { app } = context;
  await withWaitLine("reading the keys", () => app.keys.waitForOutside());
  return [
    await checkTrust(app),
    await checkLock(app),
    checkWatching(app),
    ...networkValues(app).map(({ key, value }) => okReport(key, `${value}`)),
    ...await checkServers(context),
    ...unmetRules(app).map(({ sentence }) => warningReport("rule", sentence)),
    ...await checkClients(app),
    ...reportClientsWithoutQuestions(app),
    ...await checkSignIns(app),
    ...await reportTraces(app),
    // The estimate searches the registries, too.
    ...await withWaitLine(
      "asking the registries",
      async () => [await estimateContext(app), ...await checkRegistries(context)],
    ),
    await (await app.finder()).check(),
    ...await withWaitLine("trying the sandbox", async () => await (await app.callPath()).checks()),
    await checkCloudKey(app),
    ...keysFound(app).map(keyCheck),
  ];
}

/** A needed key and the source of its value, but never its value. */
type FoundKey = WantedKey & { readonly from: string | undefined };

function keysFound(app: App): readonly FoundKey[] {
  return wantedKeys(app.config(), app.registryKeys()).map((key) => ({
    ...key,
    from: app.keys.find(key.name)?.from,
  }));
}

function keyCheck({ name, by, isRequired, from }: FoundKey): CheckReport {
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

/** Checks each registry. An unreachable registry is only a warning, because cached entries still work. */
async function checkRegistries({ app, signal }: CommandContext): Promise<readonly CheckReport[]> {
  if (app.config().registries.length === 0) {
    return [okReport("registry", "none is configured")];
  }
  const results = await (await app.registries()).lookup.testRegistries(signal);
  return results.map(({ url, servers, error }) => {
    const summary = `${servers} of its servers ${servers === 1 ? "is" : "are"} known`;
    const name = `registry ${url}`;
    return error === undefined
      ? okReport(name, summary)
      : warningReport(name, `${error.message}; ${summary}`, error.hint);
  });
}

/** Reports the source of the key for the cloud, but never its value. */
async function checkCloudKey(app: App): Promise<CheckReport> {
  const path = join(app.config().home, CLOUD_KEY_FILE);
  return await runCheck("cloud key", "not set: only cloud tools need it", async () => {
    await assertPrivate(path, "600");
    const from = app.keys.cloud()?.from;
    if (from === "the environment") return "PML_API_KEY is set";
    return from === "the key file" ? `it is kept in ${path}` : undefined;
  });
}

async function assertUsable(home: string, problem: PmlError | undefined): Promise<void> {
  if (refusesHome(problem)) throw problem;
  try {
    await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw fileNotChanged(home, error);
  }
}

/** Warns about a home on Windows that other users may read, or whose access list cannot be read. */
async function checkAccessList(app: App): Promise<readonly CheckReport[]> {
  const { AccessLists } = await import("../policy/access_list.ts");
  const { home } = app.config();
  const why = await AccessLists.of(app.loaded().environment).whyShared(home);
  if (why === undefined) return [];
  const hint = "Set PML_HOME to a folder below %USERPROFILE%, or run `icacls " +
    `"${home}" /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F"\``;
  return [warningReport("home", `other people on this machine may read it: ${why}`, hint)];
}

async function assertPrivate(path: string, mode: "600" | "700"): Promise<void> {
  const info = await Deno.stat(path).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw fileNotChanged(path, error);
  });
  if (!info || !isSharedMode(info)) return;
  throw new PmlError("CONFIG_INVALID", `${path} is open to other people on this machine`, {
    hint: `Run \`chmod ${mode} ${JSON.stringify(path)}\``,
  });
}

/** Checks the workspace file: it may wait for trust, but fails if PML could never trust it. */
async function checkTrust(app: App): Promise<CheckReport> {
  let state: Awaited<ReturnType<typeof trustState>>;
  const report = await runCheck("trust", "nothing waits to be trusted", async () => {
    state = await trustState(app);
  });
  return state?.isUndecided
    ? warningReport("trust", state.text, "Look at it with `pml trust`")
    : report;
}

/** Tries to watch a folder, because the system limits the number of watched folders. */
function checkWatching(app: App): CheckReport {
  try {
    Deno.watchFs(app.config().home, { recursive: false }).close();
    return okReport("watching", "a change of the configuration applies without a restart");
  } catch (error) {
    return warningReport(
      "watching",
      `Cannot watch files: ${messageOf(error)}; a change applies with the next call`,
      "Raise the limits fs.inotify.max_user_instances and fs.inotify.max_user_watches",
    );
  }
}

async function checkLock(app: App): Promise<CheckReport> {
  const pins = await app.pins();
  const text = pathExists(pins.path) ? pins.path : await missingLockText(app);
  return await runCheck("lock", text, async () => void await pins.state());
}

async function checkServers(context: CommandContext): Promise<readonly CheckReport[]> {
  const { app } = context;
  if (app.config().problem !== undefined) return [];
  // A stored list does not show whether its server still works.
  app.servers.lists.forget();
  await prepare(context, undefined, { waitsForAll: true });
  const replaced = app.servers.states()
    .filter(({ name }) => !app.directory.get(name).origin.isShipped && app.builtins.has(name))
    .map(({ name }) => warningReport(`server ${name}`, `your own definition ${REPLACES}`));
  const changed = app.servers.states().flatMap(({ name, changed = [] }) =>
    changed.map((tool) =>
      warningReport(
        changedName(name, tool),
        "changed, not approved",
        `Look at the change with \`pml lock update ${name}\``,
      )
    )
  );
  const unresponsive = unresponsiveServers(app.config().home).map(({ server, pid, since }) =>
    warningReport(
      `server ${visible(server)}`,
      `has not answered the PML of process ${pid} since ${new Date(since).toISOString()}`,
      `It may be busy; \`pml logs ${visible(server)}\` shows its output`,
    )
  );
  const states = app.servers.states().map(({ name, kind, state, why, tools, origin }) => ({
    name: `server ${name}`,
    ok: state !== "failed",
    ...(["blocked", "unknown"].includes(state) && { warns: true }),
    message: state === "unknown" ? `${origin}, not ready yet: its tools are not known` : (
      `${origin}, ${state}: ${why === undefined ? counted(tools, "tool") : indentLines(why, 400)}`
    ),
    ...(state === "failed" && { hint: hintFor(app, { name, kind }) }),
    ...(state === "unknown" && { hint: `\`pml tools ${name}\` waits until it answers` }),
  }));
  return [...replaced, ...states, ...unresponsive, ...changed];
}

/** Returns the action for a server whose tools could not be listed, as `pml tools NAME` shows it. */
function hintFor(app: App, { name, kind }: { readonly name: string; readonly kind: string }) {
  const failure = app.servers.failureOf(name);
  const { hint } = failure === undefined ? {} : withAction(app, failure, name);
  const look = hasLog(kind) ? `\`pml logs ${name}\` shows its output` : "Check its address";
  return hint ?? look;
}

/** Reports which clients start PML, and which start other servers themselves. */
async function checkClients(app: App): Promise<readonly CheckReport[]> {
  return (await readClientStates(app)).map(
    ({ client, startsPml, others, imported, refused }): CheckReport => {
      const name = `client ${client}`;
      if (others.length === 0) return okReport(name, "starts PML");
      const text = `starts ${startsPml ? "PML, and past it" : "past PML"}: ${others.join(", ")}`;
      const connect = startsPml ? "" : `\`pml init --client ${client}\` connects it; `;
      const importedText = imported.length === 0 ? "" : `; PML has ${imported.join(", ")}, too`;
      const refusedText = refused.length === 0 ? "" : `; PML cannot import ${refused.join(", ")}`;
      const action = others.length === refused.length
        ? "take them out of its file yourself, or give them another name there"
        : `\`pml import ${client} --move\` takes ${
          refused.length === 0 ? "them" : "the others"
        } into PML, and out of there`;
      return warningReport(name, text + importedText + refusedText, connect + action);
    },
  );
}

/** Reports the clients that used PML and cannot show its questions. */
function reportClientsWithoutQuestions(app: App): readonly CheckReport[] {
  return clientsThatCannotAsk(app.config().home).map(({ name, version, seen }) =>
    warningReport(
      `client ${`${name} ${version}`.trim()}`,
      `cannot show PML's questions; seen ${new Date(seen).toISOString().slice(0, 10)}`,
      "Answer them on a terminal: `pml approve --watch` stays open and shows each new one",
    )
  );
}

/** Reports where the user is signed in, and which sign-ins expired. */
async function checkSignIns(app: App): Promise<readonly CheckReport[]> {
  const { machine } = await app.callPath();
  return (await (await machine.signIns()).all()).map((signIn) => {
    const { server, until = Infinity, isRenewable } = signIn;
    const ok = isRenewable || until > Date.now();
    const text = ok ? signInText(signIn) : `expired: ${signInText(signIn)}`;
    return {
      name: `sign-in ${server}`,
      ok,
      message: text,
      ...(!ok && { hint: `Run \`pml login ${server}\`` }),
    };
  });
}

/** Reports where traces are sent, and whether the collector accepts them. */
async function reportTraces(app: App): Promise<readonly CheckReport[]> {
  const { environment } = app.loaded();
  const isDenoTracing = /^(?:true|1)$/i.test(environment.get("OTEL_DENO") ?? "");
  const { checkTraces } = await import("../app/app_traces.ts");
  return [
    await checkTraces(app),
    ...isDenoTracing
      ? [warningReport(
        "OTEL_DENO",
        "Deno itself exports the addresses of requests, with the keys in them, and the log",
        `Remove OTEL_DENO: PML sends its own traces when ${OTLP}ENDPOINT is set`,
      )]
      : [],
  ];
}

/** The number of searches for the estimate of their tokens. */
const SEARCHES = 10;

/** Estimates the tokens of the list of tools and of a search. */
async function estimateContext(app: App): Promise<CheckReport> {
  const { problem, gateway } = app.config();
  const name = "context";
  if (problem !== undefined) {
    return okReport(name, "not counted, because the configuration is broken");
  }
  const costs = new Costs(app);
  const { tools, tokens } = await costs.list(gateway);
  const { median } = await costs.search(SEARCHES);
  const text =
    `${gateway.exposure} lists ${tools} tools, about ${tokens} tokens; a search answers ` +
    `about ${median} (estimates)`;
  return {
    ...okReport(name, text),
    ...(tokens > MANY_TOKENS && { hint: "See `pml config --wizard`" }),
  };
}

/** Returns a text that names a changed tool, a changed skill or the changed instructions of a server. */
function changedName(server: string, name: string): string {
  if (name === INSTRUCTIONS) return `instructions of ${server}`;
  return isSkillPin(name)
    ? `skill ${visible(name.slice("@skill(".length, -1))} of ${server}`
    : `tool ${server}:${visible(name)}`;
}

function okReport(name: string, text: string): CheckReport {
  return { name, ok: true, message: text };
}

function warningReport(name: string, text: string, hint?: string): CheckReport {
  return { ...okReport(name, text), warns: true, ...withoutUndefined({ hint }) };
}

function textOf({ name, ok, warns = false, message, hint }: CheckReport): string {
  const mark = ok ? warns ? "warn" : "ok  " : "FAIL";
  return `${mark} ${name}: ${message}${hint === undefined ? "" : `\n     ${hint}`}`;
}

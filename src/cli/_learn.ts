/**
 * `pml learn`: runs a server confined by Deno's permissions, and proposes the smallest grants with
 * which it works.
 *
 * @module
 */

import { resolve } from "node:path";
import type { App } from "../app/app.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { isObject, quoted, visible, withoutUndefined } from "../core/json.ts";
import { joinSentences } from "../core/sentences.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { programOf, remoteOf } from "../servers/kinds.ts";
import { parseId, parseObject } from "./_arguments.ts";
import { callWithAnswers } from "./_call.ts";
import { usage } from "./_failure.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import { DataCopies, dataLines } from "./_learn_data.ts";
import { type Proposal, proposeChange } from "./_learn_file.ts";
import { type Example, findExample, findReadingCall, type TrialCall } from "./_learn_examples.ts";
import { askUntrusted } from "./_trust.ts";
import { resultText } from "./_result.ts";
import { agrees, isTerminal } from "./_terminal.ts";
import { notPackageError } from "./_upgrade.ts";
import { tell } from "./out.ts";

type Trial = Awaited<ReturnType<Awaited<ReturnType<App["callPath"]>>["machine"]["tryOut"]>>;
type Grants = Trial["grants"];
type Lesson = ReturnType<Trial["readLesson"]>;

/** The grants and variables that a server runs with. */
interface TrialSettings {
  readonly grants: Grants;
  /** Variables that are set in addition to the variables of its definition. */
  readonly set: Lesson["env"];
}

/** The result of a trial: its last round, and the calls that it tried. */
interface Trials {
  readonly last: TrialRound;
  readonly calls: readonly TrialCall[];
}

/** The result of one attempt to run the server. */
interface TrialRound extends Lesson, TrialSettings {
  /** The error messages of the start and of calls. */
  readonly failures: readonly string[];
  /** The tools that were called and worked. */
  readonly tried: readonly string[];
  /** The tools that were not called. */
  readonly untried: readonly string[];
  /** The tools of the server. */
  readonly tools: readonly ToolDefinition[];
  /** Whether all tools that worked are annotated as read-only. */
  readonly onlyRead: boolean;
}

/**
 * The maximum number of rounds of one trial. Each round may show another permission that the server
 * needs.
 */
const ROUNDS_MAX = 20;
/** The maximum length of a call that is offered, in characters. */
const CALL_LENGTH_MAX = 500;

/** Tries a server, and writes the grants that it needs if a user at a terminal agrees. */
export async function learn(
  context: CommandContext,
  { words: [name = "", ...words], json }: CommandInput,
) {
  const calls = readCalls(words, { name, servers: context.app.servers });
  const server = await findServer(name, context);
  const asks = !json && isTerminal();
  const copies = new DataCopies();
  let isWritten = false;
  try {
    const trials = await runTrials(server, { context, calls, asks, copies });
    const { output, question, change } = await toResult(context.app, server, trials);
    if (change?.write === undefined) return output;
    if (!asks) return { ...output, note: `${output.note}. Run it in a terminal to write this` };
    const facts = [output.text, ...copies.facts];
    if (!await agrees(question, context, facts)) return unchanged(output.value);
    await change.write();
    isWritten = true;
    const copied = copies.paths.map((path) => `${path}: copied`);
    return { ...output, text: [`${output.value.path}: changed`, ...copied].join("\n"), note: "" };
  } finally {
    if (!isWritten) copies.undo();
  }
}

/** The output of a trial, and the proposed change, which exists only if a tool worked. */
interface TrialResult {
  readonly output: CommandOutput & {
    readonly text: string;
    readonly value: { readonly path: string };
  };
  readonly question: string;
  readonly change?: Proposal;
}

async function toResult(
  app: App,
  server: ServerDefinition,
  { last, calls }: Trials,
): Promise<TrialResult> {
  const { name } = server;
  const { grants, set, tools, onlyRead, dataEnv, ...about } = last;
  // A server without tools works if it starts.
  const isTried = tools.length === 0 || last.tried.length > 0;
  const change = await proposeChange(app, { server, grants, set });
  const example = await findExample(app, { server: name, tools, calls });
  const value = {
    ...{ server: name, grants, set, ...about, only_read: onlyRead, path: change.path },
    data_env: dataEnv,
    diff: isTried ? change.diff : "",
    ...withoutUndefined({ example: example?.command }),
  };
  const described = [describeRound(last), ...dataLines(last.data)];
  if (last.failures.length > 0) {
    const note = "The trial failed. Nothing was changed";
    const output = { value, text: described.join("\n"), note, code: 1 };
    return { output, question: "" };
  }
  if (!isTried) {
    const note = "PML proposes no change, because no tool was tried";
    const text = [
      ...described,
      ...example ? [`Try a call, such as:\n${exampleText(example)}`] : [],
    ];
    return { output: { value, text: text.join("\n"), note }, question: "" };
  }
  // Each workspace has its own data folder, and all share a definition in the user's file.
  const isShared = Object.keys(set).length > 0 && change.path === app.loaded().userConfig.path;
  const worked = calls.map(({ id, arguments: args }) => `${id} ${JSON.stringify(args)}`);
  const question = [
    ...worked.length === 0 ? [] : [`\nIt works with: ${visible(worked.join(", "), 1_000)}`],
    ...example ? [untriedText(last, example)] : [],
    `Write this into ${change.path}?`,
  ].join("\n");
  const shared = isShared ? ["Each workspace gets its own data folder"] : [];
  const text = [...described, change.text, ...shared].join("\n");
  const output = { value, text, note: "Nothing was changed" };
  return { output, question, change };
}

/** Returns the text with the command of an example, and the effect of the tool that it calls. */
function exampleText({ command, effect }: Example): string {
  return `  ${visible(command, 2_000)}\n  ${effect}`;
}

/** Returns the text about the tools that were not tried, for the question about the grants. */
function untriedText({ onlyRead }: TrialRound, example: Example): string {
  const { writing } = example;
  const names = `${writing.slice(0, 10).join(", ")}${writing.length > 10 ? ", …" : ""}`;
  const others = onlyRead && writing.length > 0
    ? `PML tried no tool that may write, so these may still fail: ${
      visible(names, 1_000)
    }. To try one first`
    : "To try other tools";
  return `${others}, answer no and run:\n${exampleText(example)}`;
}

/** Tries a server. If the user named no call, offers a call of a tool that reads. */
async function runTrials(
  server: ServerDefinition,
  { context, calls, asks, copies }: {
    readonly context: CommandContext;
    readonly calls: readonly TrialCall[];
    readonly asks: boolean;
    readonly copies: DataCopies;
  },
): Promise<Trials> {
  const last = await runTrial(server, { context, calls, asks, copies });
  const isDone = calls.length > 0 || last.failures.length > 0 || !asks;
  const reading = isDone ? undefined : await findReadingCall(context.app, server.name, last.tools);
  if (reading === undefined) return { last, calls };
  const { id, arguments: args } = reading;
  const call = visible(`${id} ${JSON.stringify(args)}`, Infinity);
  // The arguments come from the server, so the user must see all of them.
  // guard: example-shown
  if (call.length > CALL_LENGTH_MAX) return { last, calls };
  const facts = [triedText(last)];
  if (!await agrees(`\nTry ${call} now? The tool only reads`, context, facts)) {
    return { last, calls };
  }
  const readingCalls = [reading];
  const lastRound = await runTrial(server, { context, calls: readingCalls, asks, copies });
  return { last: lastRound, calls: readingCalls };
}

/**
 * Runs the server with its present grants, and again with each grant that the user adds, until the
 * server works or the user stops.
 */
async function runTrial(
  { name }: ServerDefinition,
  { context, calls, asks, copies }: {
    readonly context: CommandContext;
    readonly calls: readonly TrialCall[];
    readonly asks: boolean;
    readonly copies: DataCopies;
  },
): Promise<TrialRound> {
  let settings: TrialSettings = { grants: context.app.config().grants[name] ?? {}, set: {} };
  for (let rounds = 1;; rounds++) {
    const [round, withDenied, withUnseen] = await runRound(name, { context, calls, settings });
    const isWorking = round.failures.length === 0;
    const names = Object.keys({ ...round.missing, ...round.env });
    const isTried = isWorking && calls.length > 0;
    const missesData: boolean = isTried && round.unseen.length > 0;
    const needsFolder: boolean = isTried && !missesData && Object.keys(round.dataEnv).length > 0;
    const isDone = isWorking ? !missesData && !needsFolder : names.length === 0;
    if (isDone || !asks || rounds >= ROUNDS_MAX) return round;
    const variables = Object.keys(round.env).length === 0 ? "" : " and its own folder";
    const question = missesData
      ? "\nTry again and also let it read the data that it did not see?"
      : needsFolder
      ? "\nTry again with its own data folder? Without one, its tools cannot write"
      : `\nTry again and also allow the denied accesses${variables}?`;
    if (!await agrees(question, context, [describeRound(round)])) return round;
    settings = missesData ? withUnseen : withDenied;
    if (!missesData) await copies.offer(context, round.data);
  }
}

/**
 * Runs the server and the calls once. Returns the result, and the settings for a next round: with the
 * denied accesses, or with the data that the server did not see.
 */
async function runRound(
  name: string,
  { context, calls, settings }: {
    readonly context: CommandContext;
    readonly calls: readonly TrialCall[];
    readonly settings: TrialSettings;
  },
): Promise<readonly [TrialRound, withDenied: TrialSettings, withUnseen: TrialSettings]> {
  const { app } = context;
  const { grants, set } = settings;
  const { machine } = await app.callPath();
  const trial = await machine.tryOut(name, { grants, env: set });
  tell(`Trying ${quoted(name)}, confined to ${app.config().workspace}${settingsText(settings)}`);
  const failures: string[] = [];
  const tried: string[] = [];
  let tools: readonly ToolDefinition[] = [];
  const attempt = async (name: string, work: () => Promise<string | undefined>) => {
    const failure = await work().catch((error) => toFailure(error, trial));
    if (failure !== undefined) {
      failures.push(`${name}: ${visible(joinSentences(failure.split("\n")), 1_200)}`);
    }
    return failure === undefined;
  };
  await attempt("its start", async () => {
    tools = await app.directory.get(name).list("tools") as unknown as readonly ToolDefinition[];
    return undefined;
  });
  for (const call of failures.length === 0 ? calls : []) {
    const isDone = await attempt(call.id, async () => {
      const result = await callWithAnswers(call, context);
      const text = resultText(result);
      trial.addOutput(text);
      const isDenied = /Requires \w+ access|NotCapable/.test(text);
      return result.isError === true || isDenied ? text : undefined;
    });
    if (isDone) tried.push(call.id);
  }
  const lesson = trial.readLesson();
  const idOf = (tool: ToolDefinition) => `${name}:${tool.name}`;
  const untried = tools.map(idOf).filter((id) => !calls.some((call) => call.id === id));
  const onlyRead = tools.filter((tool) => tried.includes(idOf(tool)))
    .every(({ annotations }) => isObject(annotations) && annotations.readOnlyHint === true);
  const round = { ...lesson, ...settings, failures, tried, untried, onlyRead, tools };
  const { missing, env, dataEnv } = lesson;
  // Does not grant denied accesses without which the server works.
  const withDenied = {
    grants: failures.length === 0 ? grants : trial.withGrants(missing),
    set: { ...set, ...env, ...dataEnv },
  };
  const isUnseen = (path: string) => lesson.unseen.includes(resolve(app.config().workspace, path));
  const { read = [], write = [] } = lesson.missing;
  const unseen = { read: read.filter(isUnseen), write: write.filter(isUnseen) };
  const lists = Object.entries(unseen).filter(([, list]) => list.length > 0);
  return [round, withDenied, { grants: trial.withGrants(Object.fromEntries(lists)), set }];
}

/**
 * Returns the message of an error that the server caused. Throws an error that the user or the rules
 * caused, which ends the trial.
 */
function toFailure(error: unknown, trial: Trial): string {
  const { code, message, detail } = asPmlError(error);
  if (/^(?:APPROVAL|PERMISSION|UNKNOWN|BAD_|KEY|WORKSPACE)/.test(code)) throw error;
  trial.addOutput(`${message} ${JSON.stringify(detail ?? {}).replaceAll('\\"', '"')}`);
  return message;
}

/** Finds the server to try. Throws if it is not trusted, or PML cannot run it confined. */
async function findServer(
  name: string,
  context: CommandContext,
): Promise<ServerDefinition> {
  const { app } = context;
  const unapproved = await app.policy.findUnapproved(name);
  if (unapproved !== undefined) {
    tell(`This trial runs ${quoted(name)} confined. It needs trust in the whole file:`);
    if (!isTerminal() || await askUntrusted(context, unapproved) === undefined) {
      const message = `Cannot try ${quoted(name)}: the workspace file is not trusted`;
      throw new PmlError("WORKSPACE_UNTRUSTED", message, { hint: "Look at it with `pml trust`" });
    }
  }
  const definition = app.config().servers.find((server) => server.name === name);
  const program = definition && programOf(definition);
  if (program !== undefined) return program;
  const forbidding = app.policy.whyForbidden(name);
  if (forbidding !== undefined) throw forbidding.error;
  if (definition === undefined && !app.builtins.has(name)) {
    throw notPackageError(name, { app, verb: "try" });
  }
  const why = definition !== undefined && remoteOf(definition) !== undefined
    ? "it is a remote server, so there is nothing to confine"
    : "it always runs in the sandbox";
  throw usage(`Cannot try ${quoted(name)}: ${why}`, "`pml list` shows the kind of each server");
}

/** Parses the calls to try. Each is a tool, and its arguments as JSON if it needs any. */
function readCalls(
  words: readonly string[],
  { name, servers }: { readonly name: string; readonly servers: App["servers"] },
): readonly TrialCall[] {
  const calls: TrialCall[] = [];
  for (const word of words) {
    const last = calls.at(-1);
    if (last && word.startsWith("{")) {
      last.arguments = parseObject(word);
      continue;
    }
    const id = parseId(word, servers);
    if (splitToolId(id).server !== name) {
      throw usage(`Cannot try ${quoted(id)}: it is not a tool of ${quoted(name)}`, "Leave it out");
    }
    calls.push({ id, arguments: {} });
  }
  return calls;
}

function settingsText({ grants, set }: TrialSettings): string {
  const lines = linesOf(grants);
  const granted = lines.length === 0 ? ", with no grant" : `, with the grants: ${lines.join("; ")}`;
  const variables = Object.entries(set).map(([name, value]) => `, with ${name}=${value}`);
  return visible(granted + variables.join(""), 3_000);
}

function linesOf(grants: Grants): readonly string[] {
  return Object.entries(grants).map(([kind, list]) => `${kind} ${visible(list.join(", "), 2_000)}`);
}

function describeRound(round: TrialRound): string {
  const { failures, missing, left, variables, env, dataEnv, unseen } = round;
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
  const worked = failures.length === 0;
  return [
    ...(worked ? [triedText(round)] : section("What failed:", failures)),
    ...section(worked ? "It worked without:" : "It was denied:", linesOf(missing)),
    ...section(
      "It cannot see these files, which exist. If they are its data, it starts without its data:",
      worked ? unseen.map((path) => visible(path, 400)) : [],
    ),
    ...section("Left out:", left),
    ...section(
      'It read variables that are not set for it (set them under "env" of its definition):',
      variables.length === 0 ? [] : [visible(variables.slice(0, 20).join(", "), 1_000)],
    ),
    ...section("It writes into its package folder. This sets a separate folder:", envLines(env)),
    ...section(
      "It looked for its data in its package folder, which must not change. This sets a separate folder:",
      envLines(dataEnv),
    ),
  ].join("\n");
}

function envLines(env: Lesson["env"]): readonly string[] {
  return Object.keys(env).length === 0 ? [] : [`"env": ${visible(JSON.stringify(env), 1_000)}`];
}

/** Returns a text that lists the tools that worked and the tools that were not tried. */
function triedText({ tried, untried, onlyRead }: TrialRound): string {
  const others = untried.length === 0 ? "" : ` Not tried: ${untried.slice(0, 20).join(", ")}.`;
  if (tried.length === 0) return `It starts. No tool was tried.${others}`;
  const more = onlyRead ? " Tools that write may need more." : "";
  return `It starts, and these tools worked: ${tried.join(", ")}.${more}${others}`;
}

/**
 * `pml key`: stores the user's keys in the keyring or the PML home, and lists their sources.
 *
 * @module
 */

import { basename, join } from "node:path";
import {
  findProgram,
  keyFrom,
  type KeySource,
  keySources,
  removeFromKeyring,
  systemKeyring,
} from "../oauth/outside_keys.ts";
import { parseDotenv } from "../config/dotenv.ts";
import { CLOUD_KEY_FILE, MOST_BYTES, SOURCES_FILE, STORED_KEYS_FILE } from "../config/keys.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { isOwnVariable, isSteering } from "../core/steering.ts";
import { type WarningLog, writePrivate } from "../io/private_files.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
  unchanged,
} from "./_command_context.ts";
import { subcommandOf, usage } from "./_failure.ts";
import { readInside, type TextFile, writeFile } from "./_files.ts";
import { otherValueText, usersOf } from "./_other_value.ts";
import { agrees, askSecret, assertTerminal, isTerminal } from "./_terminal.ts";
import { readAll } from "./_terminal_input.ts";

/** The key of the cloud account, which has its own file. */
export const CLOUD_KEY = "PML_API_KEY";
/** Matches the name of a variable. */
const NAME = /^[A-Za-z_]\w*$/;
/** Matches printable characters and line breaks, which PEM texts have. */
const VALUE = /^[^\p{Cc}]*(?:\r?\n[^\p{Cc}]*)*$/u;

const CLOUD_PURPOSE = ", for tools in the cloud (\`pml key set NAME\` keeps another key)";

/** Stores, lists or removes keys, or sets a program that prints a key. */
export async function key(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  const { words: [, name = CLOUD_KEY, ...command], stdin } = input;
  const run = subcommandOf<(context: CommandContext, words: KeyWords) => Promise<CommandOutput>>(
    "key",
    input.words,
    {
      set: [set, 0, 1],
      from: [from, 2, Infinity],
      list: [list, 0],
      remove: [remove, 1],
    },
  );
  assertName(name);
  return await run(context, { name, command, stdin });
}

/** The words after the name of a subcommand, and the option `--stdin`. */
interface KeyWords {
  readonly name: string;
  readonly command: readonly string[];
  readonly stdin: boolean | undefined;
}

function assertName(name: string): void {
  if (name === CLOUD_KEY) return;
  const why = !NAME.test(name)
    ? "it is not the name of a variable"
    : isOwnVariable(name)
    ? "names that begin with PML_ are PML's own"
    : isSteering(name)
    ? "it changes how programs run, so only the environment sets it"
    : undefined;
  if (why !== undefined) {
    throw usage(
      `Cannot keep the key ${quoted(name)}: ${why}`,
      "Name it as definitions do: ${NAME}",
    );
  }
}

async function set(
  context: CommandContext,
  { name, stdin = false }: KeyWords,
): Promise<CommandOutput> {
  if (!stdin && !isTerminal()) {
    const other = name === CLOUD_KEY ? "; `pml key set NAME` keeps another key" : "";
    throw usage(`Cannot keep ${name}: there is no terminal`, `Pass the key with --stdin${other}`);
  }
  const value = stdin ? (await readAll()).replace(/\r?\n$/, "") : await askSecret(
    `The value of ${name}${name === CLOUD_KEY ? CLOUD_PURPOSE : ""}`,
    context.signal,
  );
  if (!value) {
    throw new PmlError("CANCELLED", `Cannot keep ${name}: no value was given`, {
      hint: "Nothing was written",
    });
  }
  const other = await otherValueNote(context, name, value);
  const shown = await saveKey(context, name, value);
  const note = [other, unusedNote(context, name)].filter(Boolean).join("\n");
  return note === "" ? shown : { ...shown, note };
}

/** Returns a text how a server gets a key that no server uses; "" if one uses it. */
function unusedNote({ app }: CommandContext, name: string): string {
  return name === CLOUD_KEY || usersOf(app, name).length > 0
    ? ""
    : `No server here uses ${name} yet. To pass it to a server that you have: ` +
      `\`pml add SERVER --replace --env '${name}=\${${name}}'\``;
}

/** Returns a text about another value that PML has of a name, and about the servers that use it. */
async function otherValueNote(
  { app }: CommandContext,
  name: string,
  value: string,
): Promise<string> {
  if (name === CLOUD_KEY) return "";
  // Waits for the keys of the keyring and of programs only if this key comes from there.
  if (Object.hasOwn(keySources(app.config().home, app.log), name)) await app.keys.waitForOutside();
  const existing = app.keys.find(name);
  if (existing === undefined || existing.value === value) return "";
  const other = otherValueText(app, name);
  return existing.from === "the environment"
    ? `PML uses ${other}, because the environment comes first`
    : `It replaces ${other}`;
}

/** Stores a key in the keyring, or in a file of PML if the system has no keyring. */
export async function saveKey(
  context: CommandContext,
  name: string,
  value: string,
): Promise<CommandOutput> {
  assertName(name);
  if (!VALUE.test(value) || value.includes("${") || name === CLOUD_KEY && /\s/.test(value)) {
    throw usage(
      `Cannot keep ${name}: its value has characters that no key has`,
      "Paste only the key",
    );
  }
  if (name !== CLOUD_KEY) await assertReadable(context);
  // The key of the cloud has its own file, because PML reads it before the code of the keyring is loaded.
  if (name !== CLOUD_KEY && await systemKeyring(context.app)?.set(name, value)) {
    await moveTo(context, name, { keyring: true });
    return { value: { name, keyring: true }, text: `The keyring stores ${name}` };
  }
  const path = await edit(context, name, () => value);
  if (name !== CLOUD_KEY) await setSource(context, name, undefined);
  return { value: { name, path }, text: `${path}: stores ${name}, readable by you alone` };
}

/** Sets a program of the user that prints a key whenever PML starts. Runs it once as a test. */
async function from(
  context: CommandContext,
  { name, command: [program = "", ...args] }: KeyWords,
): Promise<CommandOutput> {
  if (name === CLOUD_KEY) throw usage(`Cannot keep ${CLOUD_KEY} elsewhere`, "Use `pml key set`");
  assertTerminal(`Cannot take ${name} from a program`, "");
  await assertReadable(context);
  const file = findProgram(context.app, program);
  const source = { command: [file, ...args] };
  const fact = `Each start of PML will run ${
    visible(JSON.stringify(source.command), 2_000)
  } for ${name}`;
  if (!await agrees("Run it now, and at each start?", context, [fact])) return unchanged();
  const { length } = await keyFrom(context.app, name, source);
  await moveTo(context, name, source);
  return {
    value: { name, ...source },
    text: `${name} comes from ${visible(file)} (${length} characters); PML stores no copy`,
    note: unusedNote(context, name),
  };
}

/** Sets another source of a key. Removes the key from the file after that, so that no crash loses it. */
async function moveTo(context: CommandContext, name: string, source: KeySource): Promise<void> {
  await setSource(context, name, source);
  await edit(context, name, () => undefined);
}

/** Sets or removes the source of a key outside of PML. Returns whether the key had one. */
async function setSource(
  { app }: CommandContext,
  name: string,
  source: KeySource | undefined,
): Promise<boolean> {
  const { home } = app.config();
  const path = join(home, SOURCES_FILE);
  return await app.policy.store.whileEditing(path, async () => {
    const { [name]: before, ...others } = readSources(home);
    if (before === undefined && source === undefined) return false;
    // A key that gets another source is removed from the keyring.
    // guard: key-left-in-keyring
    if (before && "keyring" in before && !(source && "keyring" in source)) {
      await removeFromKeyring(app, name);
    }
    await writePrivate(path, { ...others, ...(source && { [name]: source }) });
    await recordAction({ app }, "key kept elsewhere", { name, in: Object.keys(source ?? {}) });
    return before !== undefined;
  });
}

/**
 * Reads the sources of keys. Throws if the file cannot be read, because a write would replace it.
 */
function readSources(home: string): ReturnType<typeof keySources> {
  return keySources(home, THROWING_LOG);
}

/** Throws if a file with keys or with their sources cannot be read. Runs before a file changes. */
async function assertReadable({ app }: CommandContext): Promise<void> {
  const { home } = app.config();
  readSources(home);
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  parseKeys(await readInside(home, STORED_KEYS_FILE), join(home, STORED_KEYS_FILE));
}

/** Parses the keys of a file. Throws if a line cannot be parsed, because a write would remove it. */
function parseKeys(file: TextFile | undefined, path: string): Map<string, string> {
  const { values, invalid: [line] } = parseDotenv(file?.text ?? "");
  if (line !== undefined) {
    throw cannotChange(path, `line ${line} is not NAME=value`, "Fix or remove that line");
  }
  assertShort(file?.text ?? "", path);
  return new Map(values);
}

/** Throws if a file with this text is larger than PML reads. */
function assertShort(text: string, path: string): void {
  if (new TextEncoder().encode(text).length <= MOST_BYTES) return;
  throw cannotChange(path, "PML reads at most 64 KB of it", "Remove keys or comments from it");
}

function cannotChange(path: string, why: string, hint: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot change ${quoted(path, 400)}: ${why}`, { hint });
}

/** A log that throws each warning as an error. */
const THROWING_LOG: WarningLog = {
  warn(message) {
    throw new PmlError("CONFIG_INVALID", message, { hint: "Fix or remove that file" });
  },
};

async function remove(context: CommandContext, { name }: KeyWords): Promise<CommandOutput> {
  if (name !== CLOUD_KEY) await assertReadable(context);
  let isKnown = await setSource(context, name, undefined);
  const path = await edit(context, name, (before) => void (isKnown ||= before !== undefined));
  if (!isKnown) {
    throw usage(`Cannot remove ${name}: ${path} does not have it`, "See `pml key list`");
  }
  return { value: { name, path }, text: `${name} is removed` };
}

/** Changes one key in its file: `change` returns the new value. Returns the path of the file. */
async function edit(
  { app }: CommandContext,
  name: string,
  change: (before: string | undefined) => string | undefined,
): Promise<string> {
  const { home } = app.config();
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  const path = join(home, name === CLOUD_KEY ? CLOUD_KEY_FILE : STORED_KEYS_FILE);
  await app.policy.store.whileEditing(path, async () => {
    const file = await readInside(home, basename(path));
    const before = file?.text ?? "";
    const values = name === CLOUD_KEY ? new Map<string, string>() : parseKeys(file, path);
    const old = name === CLOUD_KEY ? before.trim() || undefined : values.get(name);
    const value = change(old);
    if (value === old) return;
    if (value === undefined) values.delete(name);
    else values.set(name, value);
    const lines = [...values].map(([key, value]) => `${key}=${JSON.stringify(value)}\n`);
    const text = name === CLOUD_KEY ? value === undefined ? "" : `${value}\n` : lines.join("");
    assertShort(text, path);
    await writeFile(path, { text, mode: 0o600, ...(file && { expectedText: file.text }) });
    await recordAction({ app }, value === undefined ? "key removed" : "key kept", { name });
  });
  return path;
}

/** Lists the needed and the stored keys with their sources. Never shows a value. */
async function list({ app }: CommandContext): Promise<CommandOutput> {
  const wantedVariables = wantedKeys(app.config(), app.registryKeys());
  const sources = keySources(app.config().home, app.log);
  await app.keys.waitForOutside();
  const unneeded = new Set([...app.keys.storedValues().keys(), ...Object.keys(sources)]);
  for (const { name } of wantedVariables) unneeded.delete(name);
  const keys = [
    { name: CLOUD_KEY, by: ["cloud tools"], from: app.keys.cloud()?.from },
    ...[...wantedVariables, ...[...unneeded].map((name) => ({ name, by: [] }))]
      .map(({ name, by }) => ({ name, by, from: app.keys.find(name)?.from })),
  ];
  const rows = keys.map(({ name, by, from }) => {
    const source = sources[name];
    const command = source && "command" in source ? ` (${source.command.join(" ")})` : "";
    const users = by.length === 0
      ? "needed by no server"
      : `needed by ${by.map((user) => visible(user)).join(", ")}`;
    return [visible(name), `${from ?? "not set"}${visible(command, 200)}`, users] as const;
  });
  const [nameWidth, fromWidth] = [0, 1].map((column) =>
    Math.max(...rows.map((row) => row[column as 0 | 1].length))
  );
  const lines = rows.map(([name, from, users]) =>
    `${name.padEnd(nameWidth ?? 0)}  ${from.padEnd(fromWidth ?? 0)}  ${users}`
  );
  return { value: { keys }, text: lines.join("\n") };
}

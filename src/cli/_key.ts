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
import { KEY_FILE, KEYS_FILE, MOST_BYTES, SOURCES_FILE } from "../config/keys.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { isOwnVariable, isSteering } from "../core/steering.ts";
import { type WarningLog, writePrivate } from "../io/private_files.ts";
import {
  type CommandContext,
  recordAction,
  type Shown,
  type Typed,
  unchanged,
} from "./_command_context.ts";
import { subcommandOf, usage } from "./_failure.ts";
import { place, readInside, type TextFile } from "./_files.ts";
import { agrees, askSecret, isTerminal, needPerson } from "./_terminal.ts";
import { readAll } from "./_terminal_input.ts";

/** The key of the cloud account, which has its own file. */
export const CLOUD_KEY = "PML_API_KEY";
const NAME = /^[A-Za-z_]\w*$/;
/** Printable characters; lines are allowed, because a key may be a PEM text. */
const VALUE = /^[^\p{Cc}]*(?:\r?\n[^\p{Cc}]*)*$/u;

const CLOUD_PURPOSE = ", for tools in the cloud (\`pml key set NAME\` keeps another key)";

/** Stores a key, lists the sources of keys, removes a key, or sets the program that prints it. */
export async function key(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [, name = CLOUD_KEY, ...command], stdin } = typed;
  const does = subcommandOf<(at: CommandContext, words: KeyWords) => Promise<Shown>>(
    "key",
    typed.words,
    {
      set: [set, 0, 1],
      from: [from, 2, Infinity],
      list: [list, 0],
      remove: [remove, 1],
    },
  );
  assertName(name);
  return await does(at, { name, command, stdin });
}

/** The words after the name of a subcommand. */
interface KeyWords {
  readonly name: string;
  readonly command: readonly string[];
  readonly stdin: boolean | undefined;
}

function assertName(name: string): void {
  if (name === CLOUD_KEY) return;
  const why = !NAME.test(name)
    ? "it is no name of a variable"
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
  at: CommandContext,
  { name, stdin = false }: KeyWords,
): Promise<Shown> {
  if (!stdin && !isTerminal()) {
    const other = name === CLOUD_KEY ? "; `pml key set NAME` keeps another key" : "";
    throw usage(`Cannot keep ${name}: there is no terminal`, `Pass the key with --stdin${other}`);
  }
  const value = stdin
    ? (await readAll()).replace(/\r?\n$/, "")
    : await askSecret(`The value of ${name}${name === CLOUD_KEY ? CLOUD_PURPOSE : ""}`, at.signal);
  if (!value) {
    throw new PmlError("CANCELLED", `Cannot keep ${name}: no value was given`, {
      hint: "Nothing was written",
    });
  }
  return await saveKey(at, name, value);
}

/** Keeps a key in the keyring, or in the file of PML where there is none. */
export async function saveKey(at: CommandContext, name: string, value: string): Promise<Shown> {
  assertName(name);
  if (!VALUE.test(value) || value.includes("${") || name === CLOUD_KEY && /\s/.test(value)) {
    throw usage(
      `Cannot keep ${name}: its value has characters that no key has`,
      "Paste only the key",
    );
  }
  if (name !== CLOUD_KEY) await assertReadable(at);
  // A file of PML's own has the key of the cloud, which is read before anything else is loaded.
  if (name !== CLOUD_KEY && await systemKeyring(at.app)?.set(name, value)) {
    await moveTo(at, name, { keyring: true });
    return { value: { name, keyring: true }, text: `The keyring stores ${name}` };
  }
  const path = await edit(at, name, () => value);
  if (name !== CLOUD_KEY) await setSource(at, name, undefined);
  return { value: { name, path }, text: `${path}: stores ${name}, readable by you alone` };
}

/** Sets a program of the user that prints a key whenever PML starts. Runs it once as a test. */
async function from(
  at: CommandContext,
  { name, command: [program = "", ...args] }: KeyWords,
): Promise<Shown> {
  if (name === CLOUD_KEY) throw usage(`Cannot keep ${CLOUD_KEY} elsewhere`, "Use `pml key set`");
  needPerson(`Cannot take ${name} from a program`, "");
  await assertReadable(at);
  const file = findProgram(at.app, program);
  const source = { command: [file, ...args] };
  const fact = `Each start of PML will run ${
    visible(JSON.stringify(source.command), 2_000)
  } for ${name}`;
  if (!await agrees("Run it now, and at each start?", at, [fact])) return unchanged();
  const { length } = await keyFrom(at.app, name, source);
  await moveTo(at, name, source);
  return {
    value: { name, ...source },
    text: `${name} comes from ${visible(file)} (${length} characters); PML stores no copy`,
  };
}

/** Takes a key out of the file once it is known to be elsewhere, so that a crash loses none. */
async function moveTo(at: CommandContext, name: string, source: KeySource): Promise<void> {
  await setSource(at, name, source);
  await edit(at, name, () => undefined);
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
    const { [name]: before, ...others } = placesIn(home);
    if (before === undefined && source === undefined) return false;
    // A key that moves elsewhere is removed from the keyring.
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
function placesIn(home: string): ReturnType<typeof keySources> {
  return keySources(home, THROWS);
}

/** Throws if a file with keys or their sources cannot be read, before any of them changes. */
async function assertReadable({ app }: CommandContext): Promise<void> {
  const { home } = app.config();
  placesIn(home);
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  keysIn(await readInside(home, KEYS_FILE), join(home, KEYS_FILE));
}

/** Returns the keys of a file. Throws if a part cannot be read, because a write would drop it. */
function keysIn(file: TextFile | undefined, path: string): Map<string, string> {
  const { values, odd: [line] } = parseDotenv(file?.text ?? "");
  if (line !== undefined) {
    throw unwritten(path, `line ${line} is not NAME=value`, "Fix or remove that line");
  }
  assertShort(file?.text ?? "", path);
  return new Map(values);
}

/** Throws if PML would not read a file with this text. */
function assertShort(text: string, path: string): void {
  if (new TextEncoder().encode(text).length <= MOST_BYTES) return;
  throw unwritten(path, "PML reads at most 64 KB of it", "Remove keys or comments from it");
}

function unwritten(path: string, why: string, hint: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot change ${quoted(path, 400)}: ${why}`, { hint });
}

const THROWS: WarningLog = {
  warn(message) {
    throw new PmlError("CONFIG_INVALID", message, { hint: "Fix or remove that file" });
  },
};

async function remove(at: CommandContext, { name }: KeyWords): Promise<Shown> {
  if (name !== CLOUD_KEY) await assertReadable(at);
  let had = await setSource(at, name, undefined);
  const path = await edit(at, name, (before) => void (had ||= before !== undefined));
  if (!had) {
    throw usage(`Cannot remove ${name}: ${path} does not have it`, "See `pml key list`");
  }
  return { value: { name, path }, text: `${name} is removed` };
}

/** Changes one key in its file, and returns the path. */
async function edit(
  { app }: CommandContext,
  name: string,
  change: (before: string | undefined) => string | undefined,
): Promise<string> {
  const { home } = app.config();
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  const path = join(home, name === CLOUD_KEY ? KEY_FILE : KEYS_FILE);
  await app.policy.store.whileEditing(path, async () => {
    const file = await readInside(home, basename(path));
    const before = file?.text ?? "";
    const values = name === CLOUD_KEY ? new Map<string, string>() : keysIn(file, path);
    const old = name === CLOUD_KEY ? before.trim() || undefined : values.get(name);
    const value = change(old);
    if (value === old) return;
    if (value === undefined) values.delete(name);
    else values.set(name, value);
    const lines = [...values].map(([one, value]) => `${one}=${JSON.stringify(value)}\n`);
    const text = name === CLOUD_KEY ? value === undefined ? "" : `${value}\n` : lines.join("");
    assertShort(text, path);
    await place(path, { text, mode: 0o600, ...(file && { over: file.text }) });
    await recordAction({ app }, value === undefined ? "key removed" : "key kept", { name });
  });
  return path;
}

/** Lists the keys that are wanted or kept, and where each comes from; never a value. */
async function list({ app }: CommandContext): Promise<Shown> {
  const wantedVariables = wantedKeys(app.config(), app.registryKeys());
  const sources = keySources(app.config().home, app.log);
  await app.keys.looked();
  const rest = new Set([...app.keys.storedValues().keys(), ...Object.keys(sources)]);
  for (const { name } of wantedVariables) rest.delete(name);
  const keys = [
    { name: CLOUD_KEY, by: ["cloud tools"], from: app.keys.cloud()?.from },
    ...[...wantedVariables, ...[...rest].map((name) => ({ name, by: [] }))]
      .map(({ name, by }) => ({ name, by, from: app.keys.find(name)?.from })),
  ];
  const rows = keys.map(({ name, by, from }) => {
    const source = sources[name];
    const command = source && "command" in source ? ` (${source.command.join(" ")})` : "";
    const who = by.length === 0
      ? "needed by no server"
      : `needed by ${by.map((one) => visible(one)).join(", ")}`;
    return [visible(name), `${from ?? "not set"}${visible(command, 200)}`, who] as const;
  });
  const [nameWidth, fromWidth] = [0, 1].map((column) =>
    Math.max(...rows.map((row) => row[column as 0 | 1].length))
  );
  const lines = rows.map(([name, from, who]) =>
    `${name.padEnd(nameWidth ?? 0)}  ${from.padEnd(fromWidth ?? 0)}  ${who}`
  );
  return { value: { keys }, text: lines.join("\n") };
}

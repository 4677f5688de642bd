/**
 * `pml key`: keeps the person's keys in the PML home, and says where each key comes from.
 *
 * @module
 */

import { basename, join } from "node:path";
import { KEY_FILE, KEYS_FILE } from "../config/keys.ts";
import { wantedKeys } from "../config/wanted_keys.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { isOwn, isSteering } from "../core/steering.ts";
import { type CommandContext, record, type Shown, type Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { place, readInside } from "./_files.ts";
import { askSecret, isTerminal } from "./_terminal.ts";

/** The key of the cloud account, which has a file of its own. */
const CLOUD = "PML_API_KEY";
const NAME = /^[A-Za-z_]\w*$/;
/** Printable characters; lines are allowed, because a key may be a PEM text. */
const VALUE = /^[^\p{Cc}]*(?:\r?\n[^\p{Cc}]*)*$/u;

/** Keeps, lists or removes keys. */
export async function key(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [what, name = CLOUD, ...more] } = typed;
  if (what === "list" && typed.words.length === 1) return list(at);
  if (more.length > 0 || what !== "set" && (what !== "remove" || typed.words.length === 1)) {
    throw usage(
      `Cannot run ${quoted(`pml key ${typed.words.join(" ")}`, 200)}`,
      "Use `pml key set [NAME]`, `pml key list` or `pml key remove NAME`",
    );
  }
  assertName(name);
  return what === "set" ? await set(at, { name, ...typed }) : await remove(at, name);
}

function assertName(name: string): void {
  const why = !NAME.test(name)
    ? "it is no name of a variable"
    : isOwn(name) && name !== CLOUD
    ? "names that begin with PML_ are PML's own"
    : isSteering(name) && name !== CLOUD
    ? "it changes how programs run, so it is taken from the environment only"
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
  { name, stdin = false }: Typed & { readonly name: string },
): Promise<Shown> {
  if (!stdin && !isTerminal()) {
    throw usage(`Cannot keep ${name}: there is no terminal to ask on`, "Pass the key with --stdin");
  }
  const value = stdin
    ? (await new Response(Deno.stdin.readable).text()).replace(/\r?\n$/, "")
    : await askSecret(`The value of ${name}`, at.signal);
  if (value === undefined || value === "") {
    throw new PmlError("CANCELLED", `Cannot keep ${name}: no value was given`, {
      hint: "Nothing was written",
    });
  }
  if (!VALUE.test(value) || value.includes("${") || name === CLOUD && /\s/.test(value)) {
    throw usage(
      `Cannot keep ${name}: its value has characters that no key has`,
      "Paste only the key",
    );
  }
  const path = await edit(at, name, () => value);
  return { value: { name, path }, text: `${path}: keeps ${name}, readable for you alone` };
}

async function remove(at: CommandContext, name: string): Promise<Shown> {
  let had = false;
  const path = await edit(at, name, (before) => void (had = before !== undefined));
  if (!had) throw usage(`Cannot remove ${name}: ${path} does not have it`, "See `pml key list`");
  return { value: { name, path }, text: `${path}: ${name} is removed` };
}

/** Changes one key in its file, and returns the path. */
async function edit(
  { app }: CommandContext,
  name: string,
  change: (before: string | undefined) => string | undefined,
): Promise<string> {
  const { home } = app.config();
  await Deno.mkdir(home, { recursive: true, mode: 0o700 });
  const path = join(home, name === CLOUD ? KEY_FILE : KEYS_FILE);
  await app.policy.store.whileEditing(path, async () => {
    const found = await readInside(home, basename(path));
    const before = found?.text ?? "";
    const values = new Map(name === CLOUD ? [] : app.keys.kept());
    const old = name === CLOUD ? before.trim() || undefined : values.get(name);
    const value = change(old);
    if (value === undefined) values.delete(name);
    else values.set(name, value);
    const lines = [...values].map(([one, said]) => `${one}=${JSON.stringify(said)}\n`);
    const text = name === CLOUD ? value === undefined ? "" : `${value}\n` : lines.join("");
    await place(path, { text, mode: 0o600, ...(found && { over: found.text }) });
    const event = value === undefined ? "key removed" : "key kept";
    if (value !== old) await record({ app }, event, { name });
  });
  return path;
}

/** Lists the keys that are wanted or kept, and where each comes from; never a value. */
function list({ app }: CommandContext): Shown {
  const wanted = wantedKeys(app.config(), app.registryKeys());
  const cloud = app.keys.cloud();
  const keys = [
    { name: CLOUD, by: ["cloud tools"], from: cloud?.from },
    ...wanted.map(({ name, by }) => ({ name, by, from: app.keys.find(name)?.from })),
    ...[...app.keys.kept().keys()].filter((name) => wanted.every((one) => one.name !== name))
      .map((name) => ({ name, by: [], from: app.keys.find(name)?.from })),
  ];
  const lines = keys.map(({ name, by, from = "not set" }) => {
    const who = by.length === 0 ? "nothing" : by.map((one) => visible(one)).join(", ");
    return `${visible(name).padEnd(24)} ${from.padEnd(16)} wanted by ${who}`;
  });
  return { value: { keys }, text: lines.join("\n") };
}

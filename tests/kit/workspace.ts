/**
 * Creates a workspace, a PML home and a canary file outside both, in a temporary folder that is
 * removed with all its content.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  writeFile,
} from "node:fs/promises";
import { homedir, tmpdir, uptime } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";

/** Names of the test's own environment that spawned programs get too: to find and load packages. */
const PASSED = [
  "PATH",
  "LANG",
  "NPM_CONFIG_REGISTRY",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "DENO_CERT",
  "DENO_TLS_CA_STORE",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_DIR",
  "SSL_CERT_FILE",
];

/** The initial content of a workspace. */
export interface WorkspaceOptions {
  /** Files of the workspace: relative path to text or bytes. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** The content of `.pml.json`, an object or an unchanged text; no file without it. */
  readonly pml?: Readonly<Record<string, unknown>> | string;
  /** Whether `PML_TRUST` names that file; true by default. */
  readonly trusted?: boolean;
  /** Environment of the spawned programs next to the basic one. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A temporary workspace; its disposal removes everything. */
export interface Workspace extends AsyncDisposable {
  /** The temporary folder around all the others. */
  readonly root: string;
  /** The workspace folder. */
  readonly path: string;
  /** The PML home (`PML_HOME`). */
  readonly home: string;
  /** A file outside the workspace that no program may read or change. */
  readonly outside: string;
  /** The random text in that file. */
  readonly canary: string;
  /** The random text that marks every process of this workspace, in its environment or its paths. */
  readonly tag: string;
  /** A time shortly before its creation, in ticks since the start of the system. */
  readonly since: number;
  /** The whole environment to spawn programs with. */
  readonly env: Readonly<Record<string, string>>;
  /** Returns the absolute path of a file in the workspace. */
  file(relative: string): string;
  /** Asserts that the canary file and its folder are unchanged. */
  assertCanaries(): Promise<void>;
}

/** Creates a workspace outside the repository. */
export async function makeWorkspace(options: WorkspaceOptions = {}): Promise<Workspace> {
  const tag = randomBytes(8).toString("hex");
  // `uptime()` returns whole seconds.
  const since = (uptime() - 2) * 100;
  // The tag in the path marks children whose environment was cleared.
  const root = await realpath(await mkdtemp(join(tmpdir(), `pml-${tag}-`)));
  const path = join(root, "ws");
  const home = join(root, "home", ".pml");
  const outside = join(root, "outside", "canary.txt");
  const canary = `canary-${randomBytes(16).toString("hex")}`;
  await Promise.all([path, home, dirname(outside), join(root, "tmp")].map(makeFolder));
  await writeFile(outside, canary, { mode: 0o600 });
  await writeFiles(path, filesOf(options));
  const before = await fingerprint(dirname(outside));
  return {
    ...{ root, path, home, outside, canary, tag, since },
    env: environment({ root, path, home, tag }, options),
    file: (relative) => join(path, relative),
    assertCanaries: async () => {
      assert.deepEqual(await fingerprint(dirname(outside)), before, `changed next to ${outside}`);
    },
    [Symbol.asyncDispose]: () => removeAll(root),
  };
}

/**
 * Returns the folder of the environment's own Deno cache, so that spawned programs work offline.
 */
export function denoDir(): string {
  const base = {
    linux: process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"),
    darwin: join(homedir(), "Library", "Caches"),
  }[process.platform as string] ?? join(homedir(), ".cache");
  return process.env.DENO_DIR ?? join(base, "deno");
}

function filesOf({ files = {}, pml }: WorkspaceOptions): Record<string, string | Uint8Array> {
  if (pml === undefined) return { ...files };
  return { ...files, ".pml.json": typeof pml === "string" ? pml : JSON.stringify(pml, null, 2) };
}

function environment(
  place: Pick<Workspace, "root" | "path" | "home" | "tag">,
  { pml, trusted = true, env = {} }: WorkspaceOptions,
): Record<string, string> {
  const passed = PASSED.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return {
    ...Object.fromEntries(passed),
    HOME: dirname(place.home),
    TMPDIR: join(place.root, "tmp"),
    TERM: "xterm",
    DENO_DIR: denoDir(),
    DENO_NO_UPDATE_CHECK: "1",
    NO_COLOR: "1",
    // Otherwise tests would show notifications on the desktop of a developer.
    DBUS_SESSION_BUS_ADDRESS: "disabled:",
    PML_HOME: place.home,
    PML_REGISTRIES: "none", // no test uses the network
    PML_TEST_TAG: place.tag,
    ...(pml !== undefined && trusted ? { PML_TRUST: join(place.path, ".pml.json") } : {}),
    ...env,
  };
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}

/** Writes files under a folder, and creates the folders between. */
export async function writeFiles(
  folder: string,
  files: Readonly<Record<string, string | Uint8Array>>,
): Promise<void> {
  for (const [relative, content] of Object.entries(files)) {
    const path = join(folder, relative);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
}

/** Describes every file under a folder: kind, mode, hash of the content. */
async function fingerprint(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(folder, { recursive: true })).sort()) {
    const path = join(folder, name);
    const info = await lstat(path);
    const hash = info.isFile()
      ? createHash("sha256").update(await readFile(path)).digest("hex")
      : "";
    found[name] = `${info.mode.toString(8)} ${info.mtimeMs} ${hash}`;
  }
  return found;
}

async function removeAll(root: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 5 };
  try {
    await rm(root, options);
  } catch {
    // A test may have removed the permissions of a folder.
    for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
      if (entry.isDirectory()) await chmod(join(entry.parentPath, entry.name), 0o700);
    }
    await rm(root, options);
  }
}

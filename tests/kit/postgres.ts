/**
 * Starts a new PostgreSQL server for a test, as a user other than root.
 *
 * @module
 */

import { freePort } from "./free_port.ts";
import { treeOf } from "./procwatch.ts";
import { until } from "./wait.ts";

/** A running server. Its disposal ends it, and removes its data. */
export interface TestPostgres extends AsyncDisposable {
  readonly port: number;
  /** A folder that its programs may write to. */
  readonly folder: string;
  /** Runs one of its programs, such as `pg_dump`. */
  readonly tool: (name: string, ...args: readonly string[]) => Promise<void>;
  /** Creates an empty database, and returns its URL. */
  readonly database: () => Promise<string>;
  /** Runs a statement in a database, and returns what `psql` prints. */
  readonly psql: (url: string, statement: string) => Promise<string>;
  /** Sends a signal to the server and all its processes: with SIGSTOP it hangs. */
  readonly signal: (signal: Deno.Signal) => Promise<void>;
  /** Limits the size of the files of the server: as on a full disk, longer writes fail. */
  readonly limit: (bytes: number | "unlimited") => Promise<void>;
}

const PASSWORD = "geheim-pa55";

/**
 * Starts a server on a free port. Throws if PostgreSQL is not installed. Only with `isSafe` does
 * confirmed data survive a crash of the machine.
 */
export async function startPostgres({ isSafe = false } = {}): Promise<TestPostgres> {
  const bin = await programs();
  const folder = await Deno.makeTempDir({ prefix: "pg-" });
  const { as, data } = await madeData(bin, folder);
  const port = freePort();
  const [program = "", ...args] = [...as, `${bin}/postgres`, "-D", data];
  const options = [...isSafe ? [] : ["fsync=off", "full_page_writes=off"]]
    .concat("unix_socket_directories=")
    .concat(`port=${port}`, "listen_addresses=127.0.0.1", "max_connections=60", "jit=off");
  const child = new Deno.Command(program, {
    args: [...args, ...options.flatMap((option) => ["-c", option])],
    ...{ cwd: folder, stdin: "null", stdout: "null", stderr: "null" },
  }).spawn();
  let isOver = false;
  const over = child.status.then(() => isOver = true);
  const urlOf = (name: string) => `postgres://pml:${PASSWORD}@127.0.0.1:${port}/${name}`;
  const psql = async (url: string, statement: string) => {
    const result = await new Deno.Command(`${bin}/psql`, {
      args: ["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, url],
    }).output();
    if (!result.success) throw new Error(new TextDecoder().decode(result.stderr));
    return new TextDecoder().decode(result.stdout).trim();
  };
  await until(async () => {
    if (isOver) throw new Error("PostgreSQL has ended");
    return await psql(urlOf("postgres"), "SELECT 1").then(() => true, () => false);
  });
  const tool = async (name: string, ...args: readonly string[]) => {
    const result = await new Deno.Command(`${bin}/${name}`, { args: [...args] }).output();
    if (!result.success) throw new Error(new TextDecoder().decode(result.stderr));
  };
  const signal = async (signal: Deno.Signal) => {
    for (const { pid } of await treeOf(child.pid)) kill(pid, signal);
  };
  let count = 0;
  return {
    ...{ port, folder, tool },
    psql,
    database: async () => {
      const name = `hub_${++count}`;
      await psql(urlOf("postgres"), `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    signal,
    limit: async (bytes) => {
      for (const { pid } of await treeOf(child.pid)) await limitFileSize(pid, bytes, as);
    },
    [Symbol.asyncDispose]: async () => {
      if (!isOver) {
        await signal("SIGCONT");
        child.kill("SIGINT");
      }
      await over;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Limits the size of the files that a process writes, until it is called with another limit. */
export async function limitFileSize(
  pid: number,
  bytes: number | "unlimited",
  as: readonly string[] = [],
): Promise<void> {
  const [program = "", ...args] = [...as, "prlimit", `--pid=${pid}`, `--fsize=${bytes}:`];
  const result = await new Deno.Command(program, { args }).output();
  const why = new TextDecoder().decode(result.stderr);
  // A child that has ended meanwhile writes nothing.
  if (!result.success && !why.includes("No such process")) throw new Error(why);
}

/**
 * Creates the data of a server. Returns the command that runs its programs as a user other than
 * root.
 */
async function madeData(
  bin: string,
  folder: string,
): Promise<{ readonly as: readonly string[]; readonly data: string }> {
  const secret = `${folder}/password`;
  await Deno.writeTextFile(secret, PASSWORD);
  const user = Deno.uid() === 0 ? await someUser() : undefined;
  if (user !== undefined) { for (const path of [folder, secret]) await owned(path, user); }
  const as = user === undefined ? [] : ["setpriv", `--reuid=${user}`, "--clear-groups"];
  const data = `${folder}/data`;
  const [first = "", ...rest] = [...as, `${bin}/initdb`];
  const result = await new Deno.Command(first, {
    args: [...rest, "-D", data, "-U", "pml", "-A", "scram-sha-256", "--pwfile", secret]
      .concat("-N", "-E", "UTF8", "--locale=C"),
    cwd: folder,
    stdout: "null",
  }).output();
  if (!result.success) throw new Error(`initdb: ${new TextDecoder().decode(result.stderr)}`);
  return { as, data };
}

/** Returns the folder of the newest programs. */
async function programs(): Promise<string> {
  const root = "/usr/lib/postgresql";
  const versions = [];
  for await (const { name } of Deno.readDir(root)) versions.push(Number(name));
  return `${root}/${Math.max(...versions)}/bin`;
}

/** PostgreSQL refuses to run as root. */
async function someUser(): Promise<number> {
  const users = await Deno.readTextFile("/etc/passwd");
  const found = /^postgres:[^:]*:(\d+)/m.exec(users) ?? /^nobody:[^:]*:(\d+)/m.exec(users);
  return Number(found?.[1] ?? 65_534);
}

async function owned(path: string, user: number): Promise<void> {
  await Deno.chown(path, user, null);
}

/** Sends a signal. The process of a connection may have ended meanwhile. */
function kill(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

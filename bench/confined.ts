/**
 * How soon npm servers answer and how much memory they hold: confined under Deno as PML starts them,
 * under node, and by plain `npx -y`. Installs them first, so it needs a registry of npm.
 *
 *     deno run -A bench/confined.ts
 *
 * @module
 */

import { join } from "node:path";
import { confinedArgs } from "../src/servers/stdio/_confined.ts";
import { packageCommand } from "../src/servers/stdio/_package_command.ts";
import { Installs } from "../src/servers/stdio/install/installs.ts";
import { median } from "./measure.ts";

const RUNS = 9;
const SERVERS = ["memory", "everything", "filesystem", "sequential-thinking"];
const HELLO = [
  {
    id: 1,
    method: "initialize",
    params: {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" },
    },
  },
  { method: "notifications/initialized" },
  { id: 2, method: "tools/list", params: {} },
].map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");

interface Start {
  readonly program: string;
  readonly args: readonly string[];
}

interface Figures {
  readonly ms: number;
  readonly mb: number;
}

/** The ways to start one server, in the order of the table. */
async function waysOf(name: string, folder: string): Promise<Readonly<Record<string, Start>>> {
  const [workspace, home] = [join(folder, "ws"), join(folder, "home")];
  const spec = `@modelcontextprotocol/server-${name}`;
  const own = name === "filesystem" ? [workspace] : [];
  const wanted = packageCommand({ name, command: "npx", args: ["-y", spec, ...own] });
  if (wanted === undefined) throw new Error(`${spec} is no package`);
  const host = {
    home,
    groups: undefined,
    installerEnvironment: () => Deno.env.toObject(),
    logInstall() {},
  };
  const installs = new Installs(host, new AbortController().signal);
  const finder = { find: (program: string) => program };
  const there = await installs.fileOf(wanted, { finder, tell: () => {} });
  const protection = { writeProtected: [".git"], readProtected: [".env*"] };
  const open = { grants: undefined, isHeld: true, certificates: [] };
  const where = { name, folder: there.folder, home, workspace, protection, ...open };
  return {
    confined: { program: Deno.execPath(), args: [...confinedArgs(where), there.file, ...own] },
    node: { program: "node", args: [there.file, ...own] },
    npx: { program: "npx", args: ["-y", spec, ...own] },
  };
}

/** Starts a server in each way, in turn, so that whatever else the machine does meets all alike. */
async function figuresOf(
  ways: readonly (readonly [string, Start])[],
  folder: string,
): Promise<readonly (readonly Figures[])[]> {
  const found: readonly Figures[][] = ways.map(() => []);
  for (let run = 0; run <= RUNS; run++) {
    for (const [at, [, start]] of ways.entries()) {
      const figures = await measure(start, folder);
      // The first of each fills caches.
      if (run > 0) found[at]?.push(figures);
    }
  }
  return found;
}

/** Starts a server and waits for the answers to the handshake and to the first list. */
async function measure({ program, args }: Start, folder: string): Promise<Figures> {
  const since = performance.now();
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: join(folder, "ws"),
    env: { DENO_DIR: join(folder, "deno"), DENO_NO_UPDATE_CHECK: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
    detached: true,
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(HELLO));
  let ms = 0;
  let text = "";
  for await (const chunk of child.stdout.values({ preventCancel: true })) {
    text += new TextDecoder().decode(chunk);
    // A big list comes in parts; its line is whole when the next one begins.
    if (ms === 0 && /"id":1[,}]/.test(text)) ms = performance.now() - since;
    if (/"id":2[,}]/.test(text) && text.endsWith("\n")) break;
  }
  const mb = residentMb(child.pid);
  Deno.kill(-child.pid, "SIGKILL");
  await child.status;
  await child.stdout.cancel();
  await writer.close().catch(() => {}); // it has ended
  return { ms, mb };
}

/** Returns the memory of a process and its children, with their proportional share of shared pages. */
function residentMb(pid: number): number {
  const of = (id: number) =>
    Number(/^Pss:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${id}/smaps_rollup`))?.[1]) / 1024;
  const tasks = [...Deno.readDirSync(`/proc/${pid}/task`)];
  const children = tasks.flatMap(({ name }) =>
    Deno.readTextFileSync(`/proc/${pid}/task/${name}/children`).split(" ").filter((id) =>
      id.trim() !== ""
    )
  );
  return children.reduce((sum, id) => sum + residentMb(Number(id)), of(pid));
}

if (import.meta.main) {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(join(folder, "ws"));
  console.log("| server | start: confined | node | npx -y | memory: confined | node | npx -y |");
  console.log("| --- | --- | --- | --- | --- | --- | --- |");
  for (const name of SERVERS) {
    const found = await figuresOf(Object.entries(await waysOf(name, folder)), folder);
    const row = (of: (figures: Figures) => number, unit: string) =>
      found.map((all) => `${median(all.map(of)).toFixed(0)} ${unit}`);
    console.log(
      `| ${[name, ...row(({ ms }) => ms, "ms"), ...row(({ mb }) => mb, "MB")].join(" | ")} |`,
    );
  }
  await Deno.remove(folder, { recursive: true });
}

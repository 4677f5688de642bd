/**
 * A program `uv` for tests: it accepts exactly the commands that PML may run, checks its folder and
 * environment, and creates files as the real one does. It was not compared with the real one.
 *
 * @module
 */

import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A package: its programs, and whether it has wheels. */
export interface FakePackage {
  readonly version: string;
  /** The text of each program. */
  readonly programs: Readonly<Record<string, string>>;
  /** The further content of its wheel for this system; nothing by default. */
  readonly wheel?: string;
  /** The wheels of other systems. */
  readonly others?: readonly string[];
  /** The wheel that is sent instead of the listed one. */
  readonly sent?: string;
  /** The hash of wheels in the registry; sha256 by default. */
  readonly hash?: "sha256" | "md5" | "none";
  /** Whether it would have to be built. */
  readonly isSource?: boolean;
  /** A dependency with an address, which is installed with it. */
  readonly needs?: string;
}

/** A folder with the program, for PATH. */
export class FakeUv implements AsyncDisposable {
  /** The folder of the program. */
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Creates the program with these packages. */
  static async make(packages: Readonly<Record<string, FakePackage>>): Promise<FakeUv> {
    const folder = await mkdtemp(join(tmpdir(), "fake-uv-"));
    await writeFile(join(folder, "packages.json"), JSON.stringify(packages));
    await writeFile(join(folder, "uv"), PROGRAM);
    await chmod(join(folder, "uv"), 0o755);
    return new FakeUv(folder);
  }

  /** Returns the commands, a line each, and the errors that it found. */
  async asked(): Promise<readonly string[]> {
    const text = await readFile(join(this.folder, "asked"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  /** Removes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true });
  }
}

const PROGRAM = `#!/usr/bin/env node
const fs = require("node:fs");
const path = require("node:path");
const args = process.argv.slice(2);
const note = (text) => fs.appendFileSync(path.join(__dirname, "asked"), text + "\\n");
const end = (text) => {
  note("REFUSED " + text);
  process.stderr.write(text + "\\n");
  process.exit(2);
};
note(args.join(" "));
if (process.env.GIT_ALLOW_PROTOCOL !== "none") end("git may fetch");
const index = process.env.UV_DEFAULT_INDEX;
if (index !== undefined) note("index " + index);
const allowed = ["UV_DEFAULT_INDEX", "UV_INDEX", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR"];
const odd = Object.keys(process.env).filter((name) =>
  /^(UV|PIP|PYTHON|VIRTUAL|CONDA)/.test(name) && !allowed.includes(name)
);
if (odd.length > 0) end("variables " + odd);
for (let at = process.cwd(); at !== path.dirname(at); at = path.dirname(at)) {
  for (const name of ["uv.toml", "pyproject.toml", ".python-version", ".env", ".venv"]) {
    if (fs.existsSync(path.join(at, name))) end("it sees " + path.join(at, name));
  }
}
const apart = ["--no-config", "--no-progress", "--color=never"];
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const packages = JSON.parse(fs.readFileSync(path.join(__dirname, "packages.json"), "utf8"));
const hashOf = ({ hash = "sha256" }, text) => hash === "none" ? "" :
  hash + ":" + require("node:crypto").createHash(hash).update(text).digest("hex");
const put = (file, text, mode) => {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text, { mode });
};
if (args[0] === "venv") {
  const python = args.indexOf("--python");
  const asked = python < 0 ? [] : args.slice(python, python + 2);
  if (!same(args, ["venv", ...apart, "--relocatable", ...asked, "venv"])) end("arguments");
  fs.mkdirSync("venv/bin", { recursive: true });
  fs.symlinkSync(process.execPath, "venv/bin/python");
  put("venv/pyvenv.cfg", "relocatable = true\\nversion_info = " + (asked[1] ?? "3.12.1") + "\\n");
} else if (args[1] === "compile") {
  const flags = ["--no-build", "--python", "venv", "--universal", "--generate-hashes"];
  flags.push("--no-header", "--no-annotate", "-o", "requirements.txt", "requirements.in");
  if (!same(args, ["pip", "compile", ...apart, ...flags])) end("arguments");
  const lines = fs.readFileSync("requirements.in", "utf8").split("\\n").filter(Boolean);
  note("requirements " + lines.join(" "));
  const listed = lines.map((spec) => {
    const [, name, version] = /^([\\w.-]+)(?:==(.+))?$/.exec(spec) ?? [];
    const found = packages[name];
    if (found === undefined || (version ?? found.version) !== found.version) {
      process.stderr.write("  × No solution found when resolving dependencies:\\n");
      process.stderr.write("  ╰─▶ Because " + spec + " was not found in the package registry\\n");
      process.exit(1);
    }
    if (found.isSource) {
      process.stderr.write("  × No solution found when resolving dependencies:\\n");
      process.stderr.write("  ╰─▶ Because " + spec + " has no usable wheels, it cannot be used.\\n");
      process.exit(1);
    }
    const hashes = [found.wheel ?? "", ...found.others ?? []].map((text) => hashOf(found, text));
    const tail = hashes.filter(Boolean).map((hash) => " \\\\\\n    --hash=" + hash).join("");
    return name + "==" + found.version + tail + "\\n";
  });
  put("requirements.txt", listed.join(""));
} else {
  const flags = ["--no-build", "--python", "venv", "--verify-hashes", "--link-mode=copy"];
  flags.push("--compile-bytecode", "-r", "requirements.txt");
  if (!same(args, ["pip", "install", ...apart, ...flags])) end("arguments");
  if (!fs.existsSync("venv/pyvenv.cfg")) end("no environment");
  const text = fs.readFileSync("requirements.txt", "utf8");
  // Programs begin with the path of their Python, which differs on each machine.
  put("venv/bin/activate", "VIRTUAL_ENV=" + process.cwd() + "\\n");
  for (const [, name, hashes] of text.matchAll(/^([\\w.-]+)==\\S+((?: \\\\\\n.*)*)$/gm)) {
    const found = packages[name];
    const hash = hashOf(found, found.sent ?? found.wheel ?? "");
    if (hash && !hashes.includes(hash)) {
      process.stderr.write("  × Failed to download " + name + "\\n  ╰─▶ Hash mismatch for " + name + "\\n");
      process.exit(1);
    }
    if (found.needs !== undefined) {
      put("venv/lib/python3.12/site-packages/needed-1.dist-info/direct_url.json", found.needs);
    }
    const packagesIn = "venv/lib/python3.12/site-packages/";
    const info = packagesIn + name.replaceAll("-", "_") + "-" + found.version + ".dist-info/";
    put(packagesIn + name.replaceAll("-", "_") + ".py", found.wheel ?? "");
    put(info + "METADATA", "Name: " + name + "\\nVersion: " + found.version + "\\n");
    const points = Object.keys(found.programs).map((one) => one + " = x:main\\n");
    put(info + "entry_points.txt", "[console_scripts]\\n" + points.join(""));
    for (const [one, text] of Object.entries(found.programs)) put("venv/bin/" + one, text, 0o755);
  }
}
`;

import assert from "node:assert/strict";
import { join } from "node:path";
import { until } from "../../tests/kit/wait.ts";
import { runProgram, StartedProgram, systemEndsPrograms } from "./process.ts";

const ignore = Deno.build.os !== "windows";
const OPEN = { ms: 120_000, maxBytes: 1_000_000 };

function folder() {
  const root = Deno.makeTempDirSync({ prefix: "pml windows " });
  return { root, [Symbol.dispose]: () => Deno.removeSync(root, { recursive: true }) };
}

/** Returns code that starts the same program as a child, and writes when it runs. */
function deep(file: string, code: string): string {
  const below = `new Deno.Command(Deno.execPath(), { args: ["eval", ${JSON.stringify(code)}],
    stdin: "null", stdout: "null", stderr: "null", detached: true }).spawn();`;
  return `${below} setTimeout(() => {}, 1e8); ${JSON.stringify(file)};`;
}

/** Returns code that appends to a file while its process runs. */
function beating(file: string): string {
  return `setInterval(() => Deno.writeTextFileSync(${
    JSON.stringify(file)
  }, "x", { append: true }), 50)`;
}

function size(file: string): number {
  try {
    return Deno.statSync(file).size;
  } catch {
    return 0;
  }
}

/** Waits until a file no longer grows. */
async function ended(file: string): Promise<void> {
  await until(async () => {
    const before = size(file);
    await new Promise((later) => setTimeout(later, 1_000));
    return size(file) === before;
  });
}

function script(code: string, args: readonly string[] = []) {
  return { file: Deno.execPath(), args: ["eval", code, ...args], cwd: "C:\\", env: {} };
}

Deno.test("a program on Windows ends with its child processes", { ignore }, async () => {
  assert.ok(systemEndsPrograms());
  using made = folder();
  const file = join(made.root, "beats");
  const started = new StartedProgram(script(deep(file, beating(file))));
  await until(() => size(file) > 0);
  started.kill();
  await started.running.status;
  await ended(file);
  await Promise.all([started.running.stdout.cancel(), started.running.stderr.cancel()]);
  await started.running.stdin.abort();
});

Deno.test("a program on Windows leaves no process behind when it ends", { ignore }, async () => {
  using made = folder();
  const file = join(made.root, "beats");
  const code = `${deep(file, beating(file))}
    setInterval(() => { try { Deno.statSync(${
    JSON.stringify(file)
  }); Deno.exit(0); } catch {} }, 50)`;
  assert.equal((await runProgram(script(code), OPEN)).code, 0);
  await ended(file);
});

Deno.test("programs on Windows end when PML is killed", { ignore }, async () => {
  using made = folder();
  const file = join(made.root, "beats");
  const module = JSON.stringify(import.meta.resolve("./process.ts"));
  const inner = JSON.stringify(deep(file, beating(file)));
  const pml = `const { StartedProgram } = await import(${module});
    new StartedProgram({ file: Deno.execPath(), args: ["eval", ${inner}], cwd: "C:\\\\", env: {} });
    setTimeout(() => {}, 1e8)`;
  const args = ["eval", "--no-check", pml];
  const child = new Deno.Command(Deno.execPath(), { args, detached: true }).spawn();
  await until(() => size(file) > 0);
  child.kill("SIGKILL");
  await child.status;
  await ended(file);
});

Deno.test(
  "a program on Windows that may outlive PML continues when PML is killed",
  { ignore },
  async () => {
    using made = folder();
    const [file, stop] = ["beats", "stop"].map((name) => join(made.root, name));
    const code = `setInterval(() => { try { Deno.statSync(${
      JSON.stringify(stop)
    }); Deno.exit(0); } catch {}
    ${beating(file ?? "").replace(/^setInterval\(\(\) => |, 50\)$/g, "")} }, 50)`;
    const module = JSON.stringify(import.meta.resolve("./process.ts"));
    const pml = `const { startProcess } = await import(${module});
    const program = { file: Deno.execPath(), args: ["eval", ${
      JSON.stringify(code)
    }], cwd: "C:\\\\" };
    startProcess({ ...program, env: {} }, { hasOutputs: false, outlives: true });
    setTimeout(() => {}, 1e8)`;
    const args = ["eval", "--no-check", pml];
    const child = new Deno.Command(Deno.execPath(), { args }).spawn();
    await until(() => size(file ?? "") > 0);
    child.kill("SIGKILL");
    await child.status;
    const before = size(file ?? "");
    await until(() => size(file ?? "") > before + 20);
    Deno.writeTextFileSync(stop ?? "", "");
    await ended(file ?? "");
  },
);

Deno.test("a batch file receives hostile arguments unchanged, and starts nothing else", {
  ignore,
}, async () => {
  using made = folder();
  const [batch, code] = ["show it.cmd", "show.js"].map((name) => join(made.root, name));
  const hit = join(made.root, "hit");
  Deno.writeTextFileSync(code ?? "", "console.log(JSON.stringify(Deno.args))");
  const line = `@"${Deno.execPath()}" run "%~dp0show.js" %*\r\n`;
  Deno.writeTextFileSync(batch ?? "", line);
  const hostile = [
    ["plain", "a b", "", "-y", "C:\\dir\\", "C:\\a b\\"],
    [`"&echo x>"${hit}"`, "&echo x", "|echo", "a^b", "^", "a>b", "<a"],
    ["%PATH%", "%%", "100%", "%cd%", "!PATH!", "%1", "%*"],
    ['"', '""', 'a"b', '\\"', '\\\\"', 'a\\"b c', "'", "`"],
    ["(a)", "a;b,c=d", "@a", "~", "é", "\u{1f600}", "$(x)"],
  ];
  for (const args of hostile) {
    const result = await runProgram({ file: batch ?? "", args, cwd: made.root, env: {} }, OPEN);
    assert.equal(result.stdout.trim(), JSON.stringify(args), result.stderr);
  }
  assert.equal(size(hit), 0);
  const broken = { file: batch ?? "", args: ["a\nb"], cwd: made.root, env: {} };
  await assert.rejects(runProgram(broken, OPEN), /argument 1 has a line break/);
});

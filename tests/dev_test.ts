import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { Dev, type DevEvent, failedIn, module, save, textIn } from "./kit/pml_dev.ts";
import { repoFile } from "./kit/pml_command.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, writeFiles } from "./kit/workspace.ts";

const say = (version: number) =>
  module({ today: `console.log("asked for", args.city); return "v${version} " + args.city;` });

Deno.test("pml dev reads calls from a pipe, writes one line of JSON for each event, and ends with the pipe", async () => {
  await using ws = await makeWorkspace({ files: { "weather.ts": say(1) } });
  const stdin = `today city="New York"\n\nweather:today {"city": "Oslo"}\ntoday`;
  const result = await runPml(ws, ["dev", "--json", "--no-types", "weather.ts"], { stdin });
  assert.equal(result.code, 0, result.stdout + result.stderr);
  const events: DevEvent[] = result.stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(events.map(({ event }) => event), [
    "check",
    ...Array.from({ length: 4 }, () => ["log", "call"]).flat(),
  ]);
  const [check, log] = events;
  assert.deepEqual([check?.ok, check?.server, check?.tools], [true, "weather", ["today"]]);
  assert.match(String(check?.runs), /with nothing granted/);
  assert.deepEqual([log?.level, log?.text], ["info", "asked for New York"]);
  const calls = events.filter(({ event }) => event === "call");
  assert.deepEqual(calls.map(textIn), ["v1 New York", "v1 New York", "v1 Oslo", "v1 Oslo"]);
  assert.deepEqual(calls.map(({ repeated }) => repeated), [false, false, false, false]);
  // PML stores nothing about a draft.
  await assert.rejects(Deno.stat(`${ws.home}/meta`), Deno.errors.NotFound);
});

Deno.test("pml dev checks each save, reports where an error is, and repeats the last call", async () => {
  await using ws = await makeWorkspace({ files: { "weather.ts": say(1) } });
  await using dev = new Dev(ws);
  assert.equal((await dev.next("check")).ok, true);
  await dev.type("today city=Oslo");
  assert.equal(textIn(await dev.next("call")), "v1 Oslo");
  await save(ws, say(1) + "const b = ;\n");
  const bad = await dev.next("check");
  const [failed] = failedIn(bad);
  assert.deepEqual([bad.ok, failed?.name, failed?.line, failed?.column], [false, "syntax", 8, 11]);
  await dev.type("today");
  assert.match(String((await dev.next("error")).hint), /^Fix the module first/);
  await save(ws, say(2));
  assert.equal((await dev.next("check")).ok, true);
  const again = await dev.next("call");
  assert.deepEqual([textIn(again), again.repeated], ["v2 Oslo", true]);
  assert.equal(dev.events.filter(({ event }) => event === "error").length, 1);
  assert.equal(await dev.end(), 0);
});

Deno.test("pml dev follows the local files that a module imports types from", async () => {
  const code = `import type { City } from "./city.ts";\n${
    module({ today: "const c: City = { name: String(args.city) }; return c.name;" })
  }`.replace("host: any", "_host: unknown");
  await using ws = await makeWorkspace({
    files: { "weather.ts": code, "city.ts": "export interface City { name: string }\n" },
  });
  await using dev = new Dev(ws, []);
  assert.equal((await dev.next("check")).ok, true);
  await writeFiles(ws.path, { "city.ts": "export interface City { name: number }\n" });
  const [failed] = failedIn(await dev.next("check"));
  assert.deepEqual([failed?.name, failed?.line, failed?.column], ["types", 7, 21]);
  assert.equal(await dev.end(), 1);
});

Deno.test("pml dev refuses a file that does not exist", async () => {
  await using ws = await makeWorkspace();
  const { code, stderr } = await runPml(ws, ["dev", "nothing.ts"]);
  assert.equal(code, 2, stderr);
  assert.match(stderr, /USAGE: .*"nothing\.ts"/);
});

Deno.test("pml dev reports the line of a thrown error, and the module's tools for a mistyped name", async () => {
  const code = module({ boom: 'throw new Error("boo");' });
  await using ws = await makeWorkspace({ files: { "weather.ts": code } });
  await using dev = new Dev(ws);
  await dev.type("boom");
  assert.equal((await dev.next("log")).text, "Error: boo (weather.ts:6:9)");
  assert.equal(textIn(await dev.next("call")), "boo");
  await dev.type("bom");
  assert.match(String((await dev.next("error")).hint), /^It has boom$/);
  assert.equal(await dev.end(), 1);
});

Deno.test("pml dev prints the exact grant that is missing, and the grant works as printed", async () => {
  const code = module(
    {
      inside: 'return await Deno.readTextFile("a.txt");',
      variable: 'return host.env("TOWN");',
      network: 'return await (await host.fetch("https://example.com/")).text();',
    },
    ' permissions: { read: ["."], env: ["TOWN"] },',
  );
  await using ws = await makeWorkspace({ files: { "weather.ts": code, "a.txt": "of a file" } });
  await writeFiles(ws.home, { "config.yaml": 'permissions: { allow: ["weather:*"] }\n' });
  const env = { TOWN: "Bergen", PML_TRUST: ws.file(".pml.json") };
  const told: Record<string, { ask?: unknown; file: string; config: Record<string, object> }> = {};
  {
    await using dev = new Dev(ws, ["--no-types"], { env });
    for (const tool of ["inside", "variable", "network"]) {
      await dev.type(tool);
      const { code, grant } = await dev.next("error");
      assert.equal(code, "SANDBOX_DENIED");
      told[tool] = grant as never;
    }
    assert.equal(await dev.end(), 1);
  }
  const private_mcps = { weather: { type: "deno", path: "./weather.ts" } };
  assert.deepEqual(told.inside, { file: ws.file(".pml.json"), config: { private_mcps } });
  assert.deepEqual(told.variable?.config, {
    private_mcps,
    grants: { weather: { env: ["TOWN"] } },
  });
  assert.deepEqual(told.network?.ask, { net: ["example.com"] });
  const result = await runPml(ws, ["dev", "--no-types", "weather.ts"], {
    stdin: "variable\nvariable",
    env,
  });
  assert.equal(result.stdout.match(/then run `pml trust`/g)?.length, 1, "the lines come once");
  const [, pasted = ""] = /then run `pml trust`:\n(\{[\s\S]*?^\})$/m.exec(result.stdout) ?? [];
  assert.deepEqual(JSON.parse(pasted), told.variable?.config);

  await using dev = new Dev(ws, ["--no-types"], { env });
  await dev.next("check");
  // The rule of the user's file does not cover the server of a workspace.
  const file = { ...JSON.parse(pasted), permissions: { allow: ["weather:*"] } };
  await writeFiles(ws.path, { ".pml.json": JSON.stringify(file) });
  await until(() => dev.stderr.includes("The configuration was applied"));
  for (const [tool, text] of [["inside", "of a file"], ["variable", "Bergen"]] as const) {
    await dev.type(tool);
    assert.equal(textIn(await dev.next("call")), text);
  }
  await dev.type("network");
  const { grant } = await dev.next("error") as DevEvent & { grant: Record<string, unknown> };
  assert.deepEqual(grant.config, { grants: { weather: { env: ["TOWN"], net: ["example.com"] } } });
  assert.equal(await dev.end(), 1);
});

Deno.test("a module that pml dev follows gets no permissions that it declares, and rules apply", async () => {
  const code = module({
    look: 'return await Deno.readTextFile("a.txt");',
    write: 'await Deno.writeTextFile("b.txt", "x");',
    never: 'return "ran";',
    asked: 'return "ran";',
  }, ' permissions: { read: ["."], write: ["."] },');
  await using ws = await makeWorkspace({
    files: { "weather.ts": code.replace('"weather"', '"git"'), "a.txt": "secret" },
  });
  await writeFiles(ws.home, {
    "config.yaml": 'permissions: { deny: ["git-dev:never"], ask: ["git-dev:asked"] }\n',
  });
  await using dev = new Dev(ws);
  // It does not replace the server of its name.
  assert.equal((await dev.next("check")).server, "git-dev");
  const codes: unknown[] = [];
  for (const tool of ["look", "write", "never", "asked"]) {
    await dev.type(tool);
    codes.push((await dev.next("error")).code);
  }
  const denied = "SANDBOX_DENIED";
  assert.deepEqual(codes, [denied, denied, "PERMISSION_DENIED", "APPROVAL_REQUIRED"]);
  await assert.rejects(Deno.stat(ws.file("b.txt")), Deno.errors.NotFound);
  await dev.end();
  const journal = await runPml(ws, ["audit", "--json"]);
  assert.match(journal.stdout, /git-dev:look/);
});

Deno.test("a call that runs while the file is saved ends with its own code, then the new code is called", async () => {
  const slow = (version: number) =>
    module({
      wait: `console.log("began"); await new Promise((end) => setTimeout(end, 1_000)); ` +
        `return "v${version}";`,
    });
  await using ws = await makeWorkspace({ files: { "weather.ts": slow(1) } });
  await using dev = new Dev(ws);
  await dev.type("wait");
  await dev.next("log");
  await save(ws, slow(2));
  assert.equal(textIn(await dev.next("call")), "v1");
  assert.equal((await dev.next("check")).ok, true);
  const again = await dev.next("call");
  assert.deepEqual([textIn(again), again.repeated, again.stale], ["v2", true, false]);
  assert.equal(await dev.end(), 0);
});

Deno.test("a call of a module of the configuration reports that the file was saved meanwhile", async () => {
  const slow = (version: number) =>
    module({
      wait:
        `console.log("began"); for (;;) { try { await Deno.stat("go"); return "v${version}"; }` +
        " catch { await new Promise((end) => setTimeout(end, 20)); } }",
    }, ' permissions: { read: ["."] },');
  await using ws = await makeWorkspace({
    files: { "weather.ts": slow(1) },
    pml: {
      private_mcps: { wx: { type: "deno", path: "./weather.ts" } },
      permissions: { allow: ["wx:*"] },
    },
  });
  await using dev = new Dev(ws);
  assert.match(String((await dev.next("check")).runs), /^It has the grants of /);
  await dev.type("wait");
  await dev.next("log");
  await save(ws, slow(2));
  await writeFiles(ws.path, { "go": "" });
  const first = await dev.next("call");
  assert.deepEqual([textIn(first), first.stale], ["v1", true]);
  // The new code is not approved, and no user can be asked.
  const again = await dev.next("error");
  assert.deepEqual([again.code, again.repeated], ["APPROVAL_STALE", true]);
  assert.equal(dev.events.filter(({ event }) => event === "call").length, 1);
});

Deno.test("pml dev asks once for a module of the workspace file, stores nothing, and asks about new rights", async () => {
  const code = (version: number, more = "") =>
    module({
      now: `return "v${version} " + await Deno.readTextFile("a.txt");`,
      asked: 'return "asked";',
    }, ` permissions: { read: ["."] ${more} },`);
  await using ws = await makeWorkspace({
    files: { "weather.ts": code(1), "a.txt": "rain" },
    pml: {
      private_mcps: { wx: { type: "deno", path: "./weather.ts" } },
      permissions: { allow: ["wx:now"], ask: ["wx:asked"] },
    },
  });
  const elsewhere = async () => {
    const { stdout } = await runPml(ws, ["call", "wx:now", "--json"]);
    return JSON.parse(stdout).error?.code;
  };
  assert.equal(await elsewhere(), undefined, "its code is approved");
  const result = await runPmlOnTerminal(ws, ["dev", "--no-types", "weather.ts"], {
    typed: [
      [/✔ wx: now, asked [^]*> $/, "now"],
      [/v1 rain[^]*> $/, () => save(ws, code(2))],
      [/May it run\? \[y\] yes {2}\[N\] no $/, "y"],
      [/v2 rain[^]*> $/, () => save(ws, code(3))],
      [/v3 rain[^]*> $/, async () => assert.equal(await elsewhere(), "APPROVAL_STALE")],
      [/^$/, "asked"],
      // A rule of the user asks each time.
      [/May it run\?.*never $/, "y"],
      [/asked[^]*✔ asked[^]*> $/, "now"],
      [/v3 rain[^]*> $/, () => save(ws, code(4, ', write: ["."]'))],
      [/reads and writes the workspace[^]*May it run\?.*\[N\] no $/, "n"],
      [/APPROVAL_DECLINED[^]*> $/, "\x03"],
    ],
  });
  assert.equal(result.code, 130, result.stdout);
  assert.equal(await elsewhere(), "APPROVAL_STALE");
});

Deno.test("pml dev waits for a deleted file, and checks it when it exists again", async () => {
  await using ws = await makeWorkspace({ files: { "weather.ts": say(1) } });
  await using dev = new Dev(ws);
  await dev.type("today city=Oslo");
  await dev.next("call");
  await rm(ws.file("weather.ts"));
  const gone = await dev.next("check");
  assert.equal(gone.ok, false);
  assert.match(`${failedIn(gone)[0]?.message}`, /no such file/);
  await dev.type("today");
  assert.equal((await dev.next("error")).hint, "Fix the module first");
  // Some editors write the file in place, so PML may read a part of it.
  await writeFiles(ws.path, { "weather.ts": say(2) });
  await dev.next("check", ({ ok }) => ok === true);
  assert.equal(textIn(await dev.next("call")), "v2 Oslo");
  assert.equal(await dev.end(), 0);
});

Deno.test("Ctrl-C ends pml dev within a second, during a call and at rest, and leaves no child", async () => {
  const code = module({ wait: 'console.log("began"); await new Promise(() => {});' });
  for (const line of ["wait", undefined]) {
    const times: number[] = [];
    // The machine may be busy: one quick end is enough.
    while (times.length < 5 && !times.some((time) => time < 1_000)) {
      await using ws = await makeWorkspace({ files: { "weather.ts": code } });
      // The test measures the end of the process.
      await using dev = new Dev(ws, undefined, { ownProcess: true });
      await dev.next("check");
      if (line !== undefined) {
        await dev.type(line);
        await dev.next("log");
      }
      const watch = new ProcWatch(ws);
      await watch.remember(dev.pid);
      const since = performance.now();
      dev.kill("SIGINT");
      assert.equal(await dev.ended(), 130);
      times.push(performance.now() - since);
      await watch.assertNothingLeft();
    }
    assert.ok(Math.min(...times) < 1_000, `${line}: ${times}`);
  }
});

Deno.test("on a terminal pml dev has a prompt, Enter repeats the last call, and Ctrl-C ends it", async () => {
  await using ws = await makeWorkspace({ files: { "weather.ts": say(1) } });
  const result = await runPmlOnTerminal(ws, ["dev", "--no-types", "weather.ts"], {
    typed: [
      [/✔ weather: today \(\d+ ms\)[^]*> $/, "today city=Oslo"],
      [/v1 Oslo[^]*✔ today \(\d+ ms\)[^]*> $/, ""],
      [/v1 Oslo[^]*> $/, () => save(ws, say(2))],
      [/v2 Oslo[^]*✔ today \(again, \d+ ms\)[^]*> $/, "today city=Rome"],
      [/v2 Rome[^]*> $/, "help"],
      [/^Tools: today$[^]*> $/m, () => save(ws, `${say(2)}const b = ;\n`)],
      [/✘ weather\.ts:8:11: Expression expected[^]*Fix the syntax error[^]*> $/, "\x03"],
    ],
  });
  assert.equal(result.code, 130, result.stdout);
  await new ProcWatch(ws).assertNothingLeft();
});

Deno.test("on a terminal changed code of a module of the configuration asks before it runs", async () => {
  await using ws = await makeWorkspace({
    files: { "weather.ts": say(1) },
    pml: { private_mcps: { weather: { type: "deno", path: "./weather.ts" } } },
    trusted: false,
  });
  const result = await runPmlOnTerminal(ws, ["dev", "--no-types", "weather.ts"], {
    typed: [
      [/changed code asks you once[^]*> $/, "today city=Oslo"],
      [/May it run.*no/, "y"],
      [/Its server describes it[^]*May it run.*no/, "y"],
      [/v1 Oslo[^]*> $/, () => save(ws, say(2))],
      [/May it run.*no/, "n"],
      [/APPROVAL_DECLINED[^]*> $/, "today city=Rome"],
      [/"Rome"[^]*May it run.*no/, "n"],
      [/APPROVAL_DECLINED[^]*> $/, "\x03"],
    ],
  });
  assert.equal(result.code, 130, result.stdout);
  assert.doesNotMatch(result.stdout, /v2 Oslo/);
});

Deno.test("no other command loads the modules of pml dev", async () => {
  for (const file of ["_commands.ts", "_program.ts", "_command_context.ts", "_call.ts"]) {
    const code = await Deno.readTextFile(repoFile(`src/cli/${file}`));
    assert.doesNotMatch(code, /^import .*_dev|from "\.\/_dev/m, file);
  }
});

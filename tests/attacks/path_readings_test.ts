/**
 * Paths that a server expands: a condition of a rule applies to all paths that the server may read.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { repoFile } from "../kit/pml_command.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell } from "./oracles.ts";
import { answerOf, picked, questionOf } from "./questions.ts";
import { makeScene } from "./stage.ts";

const SCRIPT = repoFile("tests/kit/params_server.ts");
const SERVER = {
  command: Deno.execPath(),
  args: ["run", "-A", "--no-config", "--quiet", SCRIPT, "./sent"],
  env: { SECRETS: "secrets" },
};

/** Paths that a server may resolve differently from their text. */
const OUTSIDE = [
  "$HOME/.ssh/id_rsa",
  "${HOME}/.ssh/id_rsa",
  "$home/.ssh/id_rsa",
  "$env:HOME/x",
  "%HOME%/x",
  "%USERPROFILE%",
  "..\\..\\x",
  "%2e%2e/x",
  "%252e%252e/x",
  "src/%2e%2e%2f%2e%2e%2fx",
  "{a,../../x}",
  "{a,{b,../../x}}",
  "`cat x`",
  "$(cat x)",
  "@/etc/passwd",
  "%40/etc/passwd",
  "-o",
  "|sh",
  "${X:-/etc/passwd}",
  "$UNKNOWN/x",
  "src/.?/../x",
  "\\.\\./x",
  ".''./x",
  '"/etc/passwd"',
  " /etc/passwd",
  "\u00a0../x",
  "..\u2215x",
  "\uff0e\uff0e/x",
  ".\u200b./x",
  "%c0%ae%c0%ae/x",
  "%u002e%u002e/x",
  "&#46;&#46;/x",
  "\\x2e\\x2e/x",
  "src/@(..)/x",
  ".$1./x",
  "a; cat /etc/passwd",
  "a&cat /etc/passwd",
  "{HOME}/x",
  "{{ env }}/x",
  "!HOME!/x",
];
const INSIDE = ["app/routes/$id.tsx", "app/routes/$.tsx", "100%.md", "app/[id]/page.tsx", "a b.md"];
const ALSO_INSIDE = [
  ...[
    "app/(group)/+page.svelte",
    "it's.md",
    "R&D.md",
    "Outer$1.class",
    "\u00e4\u2163 \u{1f469}\u200d\u{1f4bb}.md",
  ],
  ...["app/{id}/x", "wow!.md", "a@2x.png", "a#b,c=d.md"],
];
const DENIED = [
  "$PWD/secrets/a",
  "$SECRETS/a",
  "%SECRETS%/a",
  "secrets\\a",
  "%73ecrets/a",
  "{secrets,b}/a",
  "sec*/a",
  "se?rets/a",
  "[r-t]ecrets/a",
  "**/a",
  "SECRETS/[a-c]",
  "s\\ecrets/a",
  "sec''rets/a",
  " secrets/a",
  "sec$1rets/a",
  "sec(r)ets/a",
  "se\\c[r]ets/a",
  "sec[[:alpha:]]ets/a",
  "\uff53ecrets/a",
  "secrets\u2044a",
  "sec\u00adrets/a",
];
const UNDECIDED = [
  "$(pwd)/a",
  "+(secrets)/a",
  "$cwd/secrets/a",
  "%u0073ecrets/a",
  "a;cat secrets/a",
];
const NOT_DENIED = ["src/*", "[a-r]ecrets/a", "app/[id]/page.tsx", "s?/a"];

async function sent(ws: Workspace): Promise<number> {
  const text = await readFile(ws.file("sent"), "utf8").catch(() => "");
  return text.split("\n").length - 1;
}

async function scene(permissions: object) {
  const at = await makeScene({
    capabilities: { elicitation: { form: {} } },
    pml: { version: 1, permissions, mcpServers: { s: SERVER } },
  });
  await mkdir(at.ws.file("secrets"));
  return at;
}

Deno.test("an allow with a path covers no path that its server may resolve to another place (GX10)", async () => {
  await using at = await scene({ allow: ["s:read(path=**)", "filesystem:*"] });
  const { ws, pml } = at;
  for (const path of [...INSIDE, ...ALSO_INSIDE]) {
    const answer = await answerOf(pml, { name: "s__read", arguments: { path } });
    assert.equal(codeOf(answer), undefined, path);
  }
  const before = await sent(ws);
  for (const path of OUTSIDE) {
    const { answer } = await questionOf(pml, { name: "s__read", arguments: { path } });
    await answer(picked("No"));
  }
  assert.equal(await sent(ws), before);
  await endWell(ws, pml);
});

Deno.test("a deny with a path covers each path that its server may resolve to that place (GX10)", async () => {
  await using at = await scene({
    allow: ["s:read", "filesystem:*"],
    deny: ["s:read(path=secrets/**)"],
  });
  const { ws, pml } = at;
  for (const path of NOT_DENIED) {
    const answer = await answerOf(pml, { name: "s__read", arguments: { path } });
    assert.equal(codeOf(answer), undefined, path);
  }
  const before = await sent(ws);
  for (const path of DENIED) {
    const answer = await answerOf(pml, { name: "s__read", arguments: { path } });
    assert.equal(codeOf(answer), "PERMISSION_DENIED", path);
  }
  // A path that cannot be decided asks.
  for (const path of UNDECIDED) {
    const { answer } = await questionOf(pml, { name: "s__read", arguments: { path } });
    await answer(picked("No"));
  }
  assert.equal(await sent(ws), before);
  await endWell(ws, pml);
});

Deno.test("an argument that a server may read as the one of a condition cannot hide another value (GX10)", async () => {
  await using at = await scene({
    allow: ["s:read", "s:change(path=src/**)", "filesystem:*"],
    deny: ["s:read(path=secrets/**)"],
  });
  const { ws, pml } = at;
  const names = ["Path", "PATH", "pa_th", " path", "\uff50ath"];
  for (const name of names) {
    const args = { path: "src/a", [name]: "secrets/a" };
    const denied = await answerOf(pml, { name: "s__read", arguments: args });
    assert.equal(codeOf(denied), "PERMISSION_DENIED", name);
    const { answer } = await questionOf(pml, { name: "s__change", arguments: args });
    await answer(picked("No"));
  }
  assert.equal(await sent(ws), 0);
  const others = { path: "src/a", paths: [], path2: "b" };
  assert.equal(codeOf(await answerOf(pml, { name: "s__change", arguments: others })), undefined);
  await endWell(ws, pml);
});

Deno.test("paths of built-in servers are literal (GX10)", async () => {
  const allow = ["filesystem:read_file(path=**)"];
  await using at = await makeScene({
    pml: { version: 1, permissions: { allow } },
    files: { "$HOME.md": "home\n", "a{b,c}.md": "b\n" },
  });
  const { ws, pml } = at;
  for (const path of ["$HOME.md", "a{b,c}.md"]) {
    const answer = await answerOf(pml, { name: "filesystem__read_file", arguments: { path } });
    assert.equal(codeOf(answer), undefined, path);
  }
  await endWell(ws, pml);
});

import assert from "node:assert/strict";
import { askedFor } from "./_asked_for.ts";
import { lessonOf, type TrialOptions } from "./learn.ts";

const OPTIONS: TrialOptions = {
  name: "s",
  workspace: "/u/me/work/ws",
  isHeld: true,
  cwd: "/u/me/work/ws",
  home: "/u/me/.pml",
  userHome: "/u/me",
  grants: { read: ["/granted"], net: ["known.example"], run: ["git"] },
  protection: { writeProtected: [".git", ".mcp.json"], readProtected: [".env*", ".ssh", "*.pem"] },
  certificates: ["/etc/corp/ca.pem"],
  env: {},
  given: ["HOME", "TOKEN"],
};

function line(permission: string, value: string | null): string {
  return JSON.stringify({ v: 1, permission, value });
}

function lesson(lines: readonly string[], texts = "") {
  const asked = askedFor(lines.join("\n"), { texts, cwd: OPTIONS.cwd });
  return lessonOf(asked, OPTIONS);
}

Deno.test("A trial's lesson holds nothing that the server may do already", () => {
  const lines = [
    line("read", "/u/me/work/ws"),
    line("read", "src/a.ts"),
    line("write", "/u/me/work/ws/out.txt"),
    line("read", "/granted/x"),
    line("read", "/etc/corp/ca.pem"),
    line("read", "/u/me/.pml/servers/npm-1/node_modules/s/x.json"),
    line("net", "known.example:443"),
    line("net", "https://known.example/path?key=secret"),
    line("env", null),
    line("env", "TOKEN"),
    line("env", "NODE_ENV"),
    line("sys", "hostname"),
    "half a li",
  ];
  const wanted = { missing: {}, left: [], variables: [], env: {} };
  assert.deepEqual(lesson(lines, 'Requires run access to "git"'), wanted);
});

Deno.test("A trial's lesson is the smallest grants, folded and written as a person would", () => {
  const many = ["a", "b", "c", "d"].map((name) => line("read", `/u/me/work/docs/${name}.md`));
  const { missing, variables } = lesson([
    ...many,
    line("read", "/data/set/only.csv"),
    line("write", "../cache/one"),
    line("net", "https://api.example/v1?key=secret"),
    line("net", "api.example:8443"),
    line("env", "API_KEY"),
  ], 'Requires run access to "/usr/bin/gh", run again. Command failed: jq .');
  assert.deepEqual(missing, {
    read: ["/data/set/only.csv", "../docs"],
    write: ["../cache/one"],
    net: ["api.example", "api.example:8443"],
    run: ["gh", "jq"],
  });
  assert.deepEqual(variables, ["API_KEY"]);
  assert.doesNotMatch(JSON.stringify(missing), /secret/);
});

Deno.test("A trial's lesson proposes no key, no home, and nothing of PML's, and says so", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    [line("read", "/u/me/.ssh/config"), /\.ssh is protected/],
    [line("read", ".env.local"), /\.env\* is protected/],
    [line("write", ".git/hooks/x"), /\.git is protected/],
    [line("read", "/data/server.pem"), /\*\.pem is protected/],
    [line("read", "/u/me"), /it is too wide/],
    [line("read", "/u"), /it is too wide/],
    [line("write", "/etc"), /it is too wide/],
    [line("read", "/"), /it is too wide/],
    [line("read", "/u/me/.pml/trust.json"), /it belongs to PML/],
    [line("write", "/u/me/.pml/servers/npm-1/x.jsonl"), /its package must not change/],
    [line("net", "0.0.0.0:0"), /port 0 cannot be granted/],
    [line("net", "127.0.0.1:8080"), /an IP address cannot be granted beside host names/],
    [line("net", "a.example,b.example:443"), /it is not a host/],
    [line("net", "*:443"), /it is not a host/],
    [line("read", "/data/a,/etc/passwd"), /a path with a comma/],
    [line("ffi", "/x.node"), /ffi: it cannot be granted/],
    [line("write", null), /write without a bound: it cannot be granted/],
  ];
  for (const [asked, like] of cases) {
    const { missing, left } = lesson([asked]);
    assert.deepEqual(missing, {}, asked);
    assert.match(left.join("\n"), like, asked);
  }
  for (const program of ["sh", "bash", "/usr/bin/node", "python3", "cmd.exe", "gh,sh", "*"]) {
    const { missing, left } = lesson([], `Requires run access to "${program}"`);
    assert.deepEqual(missing, {}, program);
    assert.match(left.join("\n"), /it can run any code/, program);
  }
});

Deno.test("Many files of the home folder are not folded into it", () => {
  const files = ["a", "b", "c", "d", "e"].map((name) => line("read", `/u/me/${name}`));
  assert.deepEqual(lesson(files).missing.read?.length, 5);
});

/**
 * `pml page` with real clients: waiting calls, open questions, servers, rules, and other processes.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type {
  CallAnswer,
  CallRow,
  CallStory,
  Done,
  Plan,
  RuleRow,
  Settings,
  ToolPage,
  ToolRow,
} from "../src/control/api.ts";
import { tokenHash } from "../src/transport/http/token.ts";
import { hasBrowser } from "../src/cli/_page.ts";
import { evil } from "./attacks/evil_servers.ts";
import { connect } from "./kit/client.ts";
import { answerOnPage, openPage, type PageBrowser, signIn } from "./kit/page.ts";
import { pidOf, startInProcess } from "./kit/in_process.ts";
import { connectHttp, servePml } from "./kit/pml_serve.ts";
import { denoServer, pmlCommand } from "./kit/pml_command.ts";
import { runPml } from "./kit/run.ts";
import { END_MS, until, within } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const WRITE = {
  name: "call",
  arguments: { tool: "filesystem:write_file", arguments: { path: "a.txt", content: "b" } },
};

/** An error of the page. */
interface Refused {
  readonly error: { readonly code: string; readonly message: string; readonly hint?: string };
}

async function answer(browser: PageBrowser, reply: string) {
  return await answerOnPage<Done & Refused>(browser, { reply });
}

Deno.test("a call that waits in the home is shown whole, approved on the page, and runs once", async () => {
  await using ws = await makeWorkspace();
  await using pml = await connect(ws);
  await pml.client.listTools();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  assert.equal((await pml.client.callTool(WRITE)).isError, true);
  const waiting = await browser.waiting();
  assert.deepEqual(
    [waiting.where, waiting.workspace, waiting.server, waiting.tool],
    ["home", ws.path, "filesystem", "write_file"],
  );
  for (const part of ["a.txt", "content", ws.path]) assert.ok(waiting.text.includes(part), part);
  const replies = waiting.replies.map(({ reply }) => reply);
  assert.deepEqual(replies, ["once", "always", "no", "never"]);
  assert.ok(waiting.replies[1]?.reach?.includes(".pml.json"));
  assert.equal((await answer(browser, "once")).done, true);
  assert.equal((await pml.client.callTool(WRITE)).isError ?? false, false);
  assert.equal(await Deno.readTextFile(ws.file("a.txt")), "b");
  assert.equal((await pml.client.callTool(WRITE)).isError, true);
});

Deno.test("an answer on the page that the question does not offer, or a late one, approves nothing", async () => {
  await using ws = await makeWorkspace();
  await using pml = await connect(ws);
  await using page = await openPage(ws);
  const browser = await page.signIn();
  await pml.client.callTool(WRITE);
  const { id } = await browser.waiting();
  const early = { id, where: "home", workspace: ws.path, reply: "once" };
  assert.equal((await browser.post<Done>("/api/answer", early)).done, false);
  assert.equal((await answer(browser, "session")).error.code, "BAD_ARGUMENTS");
  assert.equal((await answer(browser, "sudo")).error.code, "BAD_REQUEST");
  assert.equal((await answer(browser, "no")).done, true);
  const late = { id, where: "home", workspace: ws.path, reply: "once" };
  assert.equal((await browser.post<Done>("/api/answer", late)).done, false);
  assert.equal((await pml.client.callTool(WRITE)).isError, true);
});

Deno.test("always and never on the page write the rules that the terminal writes", async () => {
  await using ws = await makeWorkspace({ pml: {} });
  await using pml = await connect(ws);
  await using page = await openPage(ws);
  const browser = await page.signIn();
  await pml.client.callTool(WRITE);
  assert.equal((await answer(browser, "always")).done, true);
  assert.equal((await pml.client.callTool(WRITE)).isError ?? false, false);
  const other = {
    name: "call",
    arguments: { tool: "filesystem:create_directory", arguments: { path: "d" } },
  };
  await pml.client.callTool(other);
  assert.equal((await answer(browser, "never")).done, true);
  const { permissions } = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.ok(permissions.allow.includes("filesystem:write_file"));
  assert.ok(permissions.deny.includes("filesystem:create_directory"));
  const rules = await browser.get<readonly RuleRow[]>(
    `/api/rules?workspace=${encodeURIComponent(ws.path)}`,
  );
  assert.ok(rules.some(({ rule, canRemove }) => rule === "filesystem:write_file" && canRemove));
  const of = { workspace: ws.path, rule: "filesystem:create_directory" };
  const first = await browser.post<Refused>("/api/rules/remove", of);
  assert.deepEqual([first.error.code, first.error.hint], ["WORD_NEEDED", "write"]);
  const wrong = await browser.post<Refused>("/api/rules/remove", { ...of, word: "yes" });
  assert.equal(wrong.error.code, "WORD_NEEDED");
  assert.equal(
    (await browser.post<Done>("/api/rules/remove", { ...of, word: "write" })).done,
    true,
  );
  assert.doesNotMatch(await Deno.readTextFile(ws.file(".pml.json")), /create_directory/);
});

Deno.test("an open question of a client is answered on the page, and its form is withdrawn", async () => {
  await using ws = await makeWorkspace();
  const open = Promise.withResolvers<{ readonly action: "cancel" }>();
  await using pml = await connect(ws, { elicit: () => open.promise });
  await pml.client.listTools();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const call = pml.client.callTool(WRITE);
  call.catch(() => {}); // the assertion below reports it
  const { where, client } = await browser.waiting();
  assert.deepEqual([where, typeof client], ["client", "string"]);
  const done = await answer(browser, "once");
  assert.equal(done.done, true, done.text);
  assert.equal((await call).isError ?? false, false);
  open.resolve({ action: "cancel" });
  const { stdout } = await runPml(ws, ["audit", "--json", "--kind", "event"]);
  assert.match(stdout, /"channel":"page"/);
});

Deno.test("the page shows the workspaces of all processes, and a process that ends", async () => {
  await using one = await makeWorkspace();
  await using other = await makeWorkspace();
  const env = { ...other.env, PML_HOME: one.home, HOME: one.env.HOME ?? "" };
  await using page = await openPage(one);
  const browser = await page.signIn();
  await using first = await connect(one);
  await first.client.listTools();
  {
    await using second = await connect({ ...other, env });
    await second.client.listTools();
    await until(async () => (await browser.state()).processes.length === 2);
    const state = await browser.state();
    const roots = state.workspaces.map(({ root }) => root);
    for (const { path } of [one, other]) assert.ok(roots.includes(path));
    await second.client.callTool(WRITE);
    assert.equal((await browser.waiting()).workspace, other.path);
    assert.equal((await answer(browser, "once")).done, true);
    assert.equal((await second.client.callTool(WRITE)).isError ?? false, false);
    assert.equal(await Deno.readTextFile(other.file("a.txt")), "b");
  }
  await until(async () => (await browser.state()).processes.length === 1);
});

Deno.test("the page follows calls as they end, and shows one with its records", async () => {
  await using ws = await makeWorkspace();
  await using pml = await connect(ws);
  await pml.client.listTools();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const over = new AbortController();
  using _ = { [Symbol.dispose]: () => over.abort() };
  const calls: CallRow[] = [];
  void (async () => {
    for await (const event of browser.events(over.signal)) {
      if (event.type === "call") calls.push(event.call);
    }
  })().catch(() => {});
  const tool = "filesystem:list_directory";
  // A call that ends before the page follows its process is in the journal only.
  for (let tries = 0; tries < 50 && !calls.some(({ state }) => state === "done"); tries++) {
    await pml.client.callTool({ name: "call", arguments: { tool, arguments: { path: "." } } });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(calls.some(({ state }) => state === "done"), JSON.stringify(calls));
  over.abort();
  const { calls: [row] } = await browser.get<{ calls: readonly CallRow[] }>("/api/calls");
  assert.deepEqual([row?.workspace, row?.tool, row?.state], [ws.path, "list_directory", "done"]);
  const story = await browser.get<CallStory>(`/api/call?id=${row?.id}`);
  assert.deepEqual(story.steps.map(({ what }) => what), ["start", "end"]);
});

Deno.test("a question of an identity names it, and offers no rule of the user", async () => {
  await using ws = await makeWorkspace();
  const token = "token-of-the-ci-0001";
  const ci = { token: tokenHash(token), permissions: { ask: ["filesystem:*"] } };
  await Deno.writeTextFile(join(ws.home, "config.yaml"), JSON.stringify({ identities: { ci } }));
  await using served = await servePml(ws);
  await using client = await connectHttp({ url: served.url, token });
  assert.equal((await client.client.callTool(WRITE)).isError, true);
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const waiting = await browser.waiting();
  assert.deepEqual([waiting.identity, waiting.replies.map(({ reply }) => reply)], [
    "ci",
    ["once", "no"],
  ]);
  const refused = await fetch(`${page.origin}/api/state`, {
    headers: { ...browser.headers, authorization: `Bearer ${token}` },
  });
  assert.equal(refused.status, 403);
  await refused.body?.cancel();
  assert.equal((await answer(browser, "once")).done, true);
  assert.equal((await client.client.callTool(WRITE)).isError ?? false, false);
});

Deno.test("a journal that cannot be read is reported, and the rest is shown", async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const folder = join(ws.home, "journal");
  await Deno.mkdir(folder, { recursive: true });
  await Deno.symlink(ws.outside, join(folder, "2026-11-30T00-00-00.000Z-1-12345678.0001.jsonl"));
  const state = await browser.state();
  assert.equal(typeof state.journalProblem, "string");
  assert.equal(state.workspaces[0]?.root, ws.path);
});

Deno.test("a pause on the page refuses every new call until it is lifted", async () => {
  await using ws = await makeWorkspace();
  await using pml = await connect(ws);
  await pml.client.listTools();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const list = {
    name: "call",
    arguments: { tool: "filesystem:list_directory", arguments: { path: "." } },
  };
  assert.equal((await pml.client.callTool(list)).isError ?? false, false);
  const of = { workspace: ws.path };
  assert.equal((await browser.post<Done>("/api/pause", of)).done, true);
  assert.equal((await browser.state()).workspaces[0]?.isPaused, true);
  await until(async () => (await pml.client.callTool(list)).isError === true);
  assert.equal((await browser.post<Done>("/api/resume", of)).done, true);
  await until(async () => (await pml.client.callTool(list)).isError !== true);
  assert.equal((await browser.state()).workspaces[0]?.isPaused, false);
  await runPml(ws, ["pause"]);
  await until(async () => (await browser.state()).workspaces[0]?.isPaused === true);
});

Deno.test("a tool is searched, shown and called from the page, with the same question", async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const at = `workspace=${encodeURIComponent(ws.path)}`;
  const tools = await browser.get<readonly ToolRow[]>(`/api/tools?${at}&server=filesystem`);
  assert.equal(tools.find(({ id }) => id === "filesystem:write_file")?.rule, "ask");
  const tool = await browser.get<ToolPage>(`/api/tool?${at}&id=filesystem:write_file`);
  assert.match(tool.signature, /^write_file\(/);
  const call = browser.post<CallAnswer>("/api/call", {
    ...{ workspace: ws.path, tool: "filesystem:write_file" },
    arguments: { path: "p.txt", content: "from the page" },
  });
  assert.equal((await answer(browser, "once")).done, true);
  assert.equal((await call).isError, false);
  assert.equal(await Deno.readTextFile(ws.file("p.txt")), "from the page");
  const refused = browser.post<CallAnswer>("/api/call", {
    ...{ workspace: ws.path, tool: "filesystem:write_file" },
    arguments: { path: "q.txt", content: "x" },
  });
  assert.equal((await answer(browser, "no")).done, true);
  assert.equal((await refused).error?.code, "APPROVAL_DECLINED");
  const unknown = { workspace: ws.path, tool: "nothing:here", arguments: {} };
  assert.equal((await browser.post<CallAnswer>("/api/call", unknown)).isError, true);
});

Deno.test("a server is added with its plan and the table of its tools, disabled and removed", async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const { command, args } = denoServer("tests/kit/echo_server.ts");
  const source = [command, ...args].join(" ");
  const needed = await browser.post<Refused>("/api/add/plan", { workspace: ws.path, source });
  assert.equal(needed.error.code, "BAD_ARGUMENTS");
  const plan = await browser.post<Plan>("/api/add/plan", {
    ...{ workspace: ws.path, source, name: "echo" },
  });
  assert.ok(plan.text.includes("echo_server.ts"));
  const config = join(ws.home, "config.yaml");
  await assert.rejects(Deno.readTextFile(config));
  const added = await browser.post<Done>("/api/plan/apply", { plan: plan.id });
  assert.equal(added.done, true);
  assert.match(await Deno.readTextFile(config), /echo_server/);
  const again = await browser.post<Done>("/api/plan/apply", { plan: plan.id });
  assert.equal(again.done, false);
  const [tool] = added.next?.tools ?? [];
  assert.equal(tool?.server, "echo");
  const decided = await browser.post<Done>("/api/plan/apply", {
    plan: added.next?.id,
    tools: [{ server: "echo", tool: tool?.tool, decision: "deny" }],
  });
  assert.equal(decided.done, true);
  assert.ok((await Deno.readTextFile(config)).includes(`echo:${tool?.tool}`));
  for (const action of ["disable", "enable", "remove"]) {
    const of = { workspace: ws.path, name: "echo", action };
    assert.equal((await browser.post<Refused>("/api/server", of)).error.code, "WORD_NEEDED");
    assert.equal((await browser.post<Done>("/api/server", { ...of, word: "write" })).done, true);
    const { workspaces: [workspace] } = await browser.state();
    const state = workspace?.servers.find(({ name }) => name === "echo")?.state;
    assert.equal(state === "disabled", action === "disable", action);
    assert.equal(state === undefined, action === "remove", action);
  }
  assert.doesNotMatch(await Deno.readTextFile(config), /echo/);
});

Deno.test("variables that a file of one workspace may have set do not count for others on the page", async () => {
  const pml = { version: 1, permissions: { allow: ["filesystem:*"] } };
  await using other = await makeWorkspace({ pml, trusted: false });
  const planted = other.file(".pml.json");
  const client = { mcpServers: { pml: { command: "pml", env: { PML_TRUST: planted } } } };
  for (const isPlanted of [true, false]) {
    const files: Readonly<Record<string, string>> = isPlanted
      ? { ".mcp.json": JSON.stringify(client) }
      : {};
    await using ws = await makeWorkspace({ files });
    const env = { ...ws.env, PML_TRUST: planted };
    await using page = await openPage({ ...ws, env });
    const browser = await page.signIn();
    await using running = await connect({ ...other, env: { ...other.env, PML_HOME: ws.home } });
    await running.client.listTools();
    await until(async () => (await browser.state()).workspaces.length === 2);
    const { workspaces } = await browser.state();
    const { trust = "" } = workspaces.find(({ root }) => root === other.path) ?? {};
    assert.equal(/not trusted|untrusted/.test(trust), isPlanted, trust);
  }
});

Deno.test("a plan that ends rules of an earlier server loses no rule that was written since", async () => {
  await using ws = await makeWorkspace();
  const config = join(ws.home, "config.yaml");
  const rules = (deny: readonly string[]) => ({ permissions: { allow: ["echo:*"], deny } });
  await Deno.writeTextFile(config, JSON.stringify(rules(["echo:drop", "git:push"])));
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const { command, args } = denoServer("tests/kit/echo_server.ts");
  const source = [command, ...args].join(" ");
  const of = { workspace: ws.path, source, name: "echo" };
  const plan = await browser.post<Plan>("/api/add/plan", of);
  assert.match(plan.text, /echo:drop/);
  await Deno.writeTextFile(config, JSON.stringify(rules(["echo:drop", "git:push", "shell:*"])));
  const late = await browser.post<Done & Partial<Refused>>("/api/plan/apply", { plan: plan.id });
  assert.notEqual(late.done, true, late.text);
  assert.match(await Deno.readTextFile(config), /shell:/);
  assert.doesNotMatch(await Deno.readTextFile(config), /echo_server/);
  const again = await browser.post<Plan>("/api/add/plan", of);
  const added = await browser.post<Done>("/api/plan/apply", { plan: again.id });
  assert.equal(added.done, true, added.text);
  const text = await Deno.readTextFile(config);
  assert.match(text, /shell:/);
  assert.doesNotMatch(text, /echo:(?:drop|\*)/);
});

Deno.test("an import on the page names the terminal for keys and doubles", async () => {
  const key = "tix_9fK2mQ7xW4vB8nR3";
  const cursor = (servers: unknown) => ({ ".cursor/mcp.json": JSON.stringify(servers) });
  const git = { command: "uvx", args: ["mcp-server-git"] };
  const tix = { url: "https://tix.example/mcp", headers: { Authorization: `Bearer ${key}` } };
  for (const [servers, notes] of [[{ git2: git, tix }, 2], [{ plain: { command: "true" } }, 0]]) {
    await using ws = await makeWorkspace({ files: cursor({ mcpServers: servers }) });
    await using page = await openPage(ws);
    const browser = await page.signIn();
    const of = { workspace: ws.path, client: "cursor" };
    const { text } = await browser.post<Plan>("/api/import/plan", of);
    assert.equal(text.match(/`pml import cursor`/g)?.length ?? 0, notes, text);
    assert.ok(!text.includes(key));
  }
});

Deno.test("a table of tools that changed is shown again, and unusual texts cannot be allowed", async () => {
  const tool = (name: string, description: string) => ({
    ...{ name, description, inputSchema: { type: "object" } },
  });
  const hidden = tool("hidden", "Reads\u202e a file");
  const files = { "tools.json": JSON.stringify([tool("one", "Does one"), hidden]) };
  await using ws = await makeWorkspace({ files });
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const { command, args } = evil("lists", ws.file("tools.json"));
  const source = [command, args].flat().join(" ");
  const of = { workspace: ws.path, source, name: "lists" };
  const plan = await browser.post<Plan>("/api/add/plan", of);
  const added = await browser.post<Done>("/api/plan/apply", { plan: plan.id });
  const tools = ["one", "hidden"].map((name) => ({
    server: "lists",
    tool: name,
    decision: "allow",
  }));
  await Deno.writeTextFile(
    ws.file("tools.json"),
    JSON.stringify([tool("one", "Does more"), hidden]),
  );
  const changed = await browser.post<Done>("/api/plan/apply", { plan: added.next?.id, tools });
  assert.equal(changed.done, false);
  assert.ok(changed.next);
  const config = join(ws.home, "config.yaml");
  assert.doesNotMatch(await Deno.readTextFile(config), /lists:one/);
  const decided = await browser.post<Done>("/api/plan/apply", { plan: changed.next?.id, tools });
  assert.equal(decided.done, true, decided.text);
  assert.match(await Deno.readTextFile(config), /lists:one/);
  assert.doesNotMatch(await Deno.readTextFile(config), /lists:hidden/);
});

Deno.test("a server whose address has a key, and a folder that is none, are refused", async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const source = "https://mcp.example.com/mcp?api_key=sk-live-51H8xYzAbCdEfGhIjKlMnOp";
  const keyed = await browser.post<Refused>("/api/add/plan", {
    ...{ workspace: ws.path, source, name: "keyed" },
  });
  assert.equal(keyed.error.code, "BAD_ARGUMENTS");
  for (const workspace of [join(ws.root, "gone"), ".", "../x"]) {
    const other = await browser.get<Refused>(
      `/api/tools?workspace=${encodeURIComponent(workspace)}`,
    );
    assert.equal(other.error.code, "BAD_ARGUMENTS", workspace);
  }
});

Deno.test("settings show names of keys and never a value", async () => {
  const secret = "sk-secret-value-of-a-key-0123456789";
  await using ws = await makeWorkspace({ env: { MY_SECRET_KEY: secret } });
  const servers = { remote: { url: "https://a.example/mcp", headers: { K: "${MY_SECRET_KEY}" } } };
  await Deno.writeTextFile(join(ws.home, "config.yaml"), JSON.stringify({ mcpServers: servers }));
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const at = `workspace=${encodeURIComponent(ws.path)}`;
  const settings = await browser.get<Settings>(`/api/settings?${at}`);
  assert.deepEqual(settings.keys.find(({ name }) => name === "MY_SECRET_KEY")?.isSet, true);
  const all = JSON.stringify([
    settings,
    await browser.state(),
    await browser.get(`/api/rules?${at}`),
  ]);
  assert.ok(!all.includes(secret));
});

Deno.test("a broken configuration is shown with its file and line", async () => {
  await using ws = await makeWorkspace();
  const config = join(ws.home, "config.yaml");
  await Deno.writeTextFile(config, "limits:\n  call_ms: often\n");
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const { workspaces: [workspace] } = await browser.state();
  const [problem] = workspace?.problems ?? [];
  assert.deepEqual([problem?.code, problem?.file], ["CONFIG_INVALID", config]);
});

Deno.test("a second pml page opens a new link at the running one", async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const first = await page.signIn();
  const { stdout, code } = await runPml(ws, ["page", "--json", "--no-open"]);
  const { origin, url, running } = JSON.parse(stdout);
  assert.deepEqual([code, origin, running], [0, page.origin, true]);
  assert.notEqual(url, page.link);
  const second = await signIn(url);
  assert.ok((await second.state()).workspaces);
  assert.ok((await first.state()).workspaces);
});

Deno.test("a page that was killed blocks nothing, and leaves no usable link", {
  ignore: Deno.build.os === "windows",
}, async () => {
  await using ws = await makeWorkspace();
  {
    await using page = await openPage(ws, { ownProcess: true });
    Deno.kill(pidOf(page.running), "SIGKILL");
    await page.running.status;
  }
  await using page = await openPage(ws);
  const browser = await page.signIn();
  assert.ok((await browser.state()).workspaces);
});

Deno.test("the page ends with a signal while tabs are open", {
  ignore: Deno.build.os === "windows",
}, async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws, { ownProcess: true });
  const browser = await page.signIn();
  const { headers } = browser;
  const stream = await fetch(`${page.origin}/api/events`, { headers });
  page.running.kill("SIGTERM");
  const { code } = await within(page.running.status, { ms: END_MS, what: () => page.stderr });
  assert.equal(code, 0);
  await stream.body?.cancel().catch(() => {});
});

Deno.test("only the user can open the files of the page", {
  ignore: Deno.build.os === "windows",
}, async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const folder = join(ws.home, "page");
  assert.equal((await Deno.stat(folder)).mode! & 0o777, 0o700);
  for await (const { name } of Deno.readDir(folder)) {
    assert.equal((await Deno.lstat(join(folder, name))).mode! & 0o077, 0, name);
  }
  assert.ok(page.port > 0);
});

Deno.test("the browser is opened through a private file, and no argument has the secret", {
  ignore: Deno.build.os !== "linux",
}, async () => {
  await using ws = await makeWorkspace();
  const bin = join(ws.root, "bin");
  const out = join(ws.root, "opened");
  await Deno.mkdir(bin);
  const script = `#!/bin/sh\nprintf '%s' "$*" > ${out}.tmp && mv ${out}.tmp ${out}\n`;
  await Deno.writeTextFile(join(bin, "xdg-open"), script, { mode: 0o755 });
  const env = { ...ws.env, DISPLAY: ":0", PATH: `${bin}:${ws.env.PATH}` };
  const running = startInProcess({ args: ["page", "--json"], cwd: ws.path, env });
  const reader = running.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  const { opened, url } = JSON.parse(value);
  // In a container there is no browser.
  if (opened === true) {
    await until(() => Deno.readTextFile(out).then(() => true, () => false));
    const address = await Deno.readTextFile(out);
    assert.match(address, /^file:\/\//);
    const path = new URL(address).pathname;
    assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
    const [, link = ""] = /url=(\S+?)"/.exec(await Deno.readTextFile(path)) ?? [];
    assert.equal(url, undefined);
    assert.ok(!address.includes(new URL(link).hash.slice(1)));
    await signIn(link);
  }
  running.kill("SIGTERM");
  assert.equal((await running.status).code, 0);
  await reader.cancel();
  const names = [...Deno.readDirSync(join(ws.home, "page"))].map(({ name }) => name);
  assert.deepEqual(names.filter((name) => name.endsWith(".html")), []);
});

Deno.test("a link is printed over SSH and without a display", () => {
  const none = () => undefined;
  const of = (variables: Readonly<Record<string, string>>) => (name: string) => variables[name];
  assert.equal(hasBrowser(none, "linux"), false);
  assert.equal(hasBrowser(of({ SSH_CONNECTION: "a 1 b 2", DISPLAY: ":0" }), "linux"), false);
  assert.equal(hasBrowser(of({ SSH_TTY: "/dev/pts/1" }), "darwin"), false);
  assert.equal(hasBrowser(of({ container: "podman", DISPLAY: ":0" }), "linux"), false);
  assert.equal(hasBrowser(none, "darwin"), true);
});

Deno.test("pml serve --open starts the page, and not on its own port", {
  ignore: Deno.build.os !== "linux",
}, async () => {
  await using ws = await makeWorkspace();
  await using served = await serveOpen(ws);
  const [serve, page] = served.lines;
  assert.notEqual(
    new URL(JSON.parse(serve ?? "").url).port,
    new URL(JSON.parse(page ?? "").origin).port,
  );
  const { url } = JSON.parse(page ?? "");
  assert.ok((await (await signIn(url)).state()).workspaces);
});

/** Runs `pml serve --open` until both lines of JSON are there. */
async function serveOpen(ws: Workspace) {
  const [program, ...first] = pmlCommand();
  const child = new Deno.Command(program, {
    args: [...first, "serve", "--open", "--json", "--port", "0"],
    ...{ cwd: ws.path, env: ws.env, clearEnv: true },
    ...{ stdin: "null", stdout: "piped", stderr: "null" },
  }).spawn();
  let text = "";
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  while (text.split("\n").length < 3) text += (await reader.read()).value ?? "";
  return {
    lines: text.split("\n"),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await child.status;
      // The page is a separate process, which goes on without the server.
      for (const pid of await pidsOf(ws.tag)) Deno.kill(pid, "SIGTERM");
      await reader.cancel();
    },
  };
}

/** Returns the processes of PML that have a text in their environment. */
async function pidsOf(tag: string): Promise<readonly number[]> {
  const pids: number[] = [];
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const text = await Deno.readTextFile(`/proc/${name}/environ`).catch(() => "");
    const args = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
    if (text.includes(tag) && args.includes("\0page\0")) pids.push(Number(name));
  }
  return pids;
}

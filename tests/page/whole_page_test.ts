/**
 * The page in a browser, with a real `pml page`, real clients and real servers.
 *
 * @module
 */

import assert from "node:assert/strict";
import { openChromium, type Page } from "../kit/chromium.ts";
import { connect } from "../kit/client.ts";
import { openPage, type TestPage } from "../kit/page.ts";
import { denoServer } from "../kit/pml_command.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { button, element, faultsOf, field, isActive, show, textOf } from "./page_scene.ts";

const QUESTION = "document.querySelector('.question') !== null";

function write(path: string) {
  const tool = "filesystem:write_file";
  return { name: "call", arguments: { tool, arguments: { path, content: "from a call" } } };
}

function folder(path: string) {
  return { name: "call", arguments: { tool: "filesystem:create_directory", arguments: { path } } };
}

/** Opens the page of a home by its link. */
async function browse(served: TestPage) {
  const chromium = await openChromium();
  const page = await chromium.page(served.origin);
  await page.go(served.link.slice(served.origin.length));
  await page.until("document.querySelector('h1') !== null");
  return { chromium, page, [Symbol.asyncDispose]: () => chromium[Symbol.asyncDispose]() };
}

async function click(page: Page, of: string): Promise<void> {
  await page.until(isActive(of));
  await page.click(of);
}

function tabWith(ws: Workspace): string {
  return `document.body.innerText.includes(${JSON.stringify(ws.path)})`;
}

Deno.test("a user approves and denies calls of two workspaces, in two tabs and after a reload", async () => {
  await using ws = await makeWorkspace();
  await using other = await makeWorkspace();
  const env = { ...other.env, PML_HOME: ws.home, HOME: ws.env.HOME ?? "" };
  await using served = await openPage(ws);
  await using browser = await browse(served);
  const { page, chromium } = browser;
  await using first = await connect(ws);
  await first.client.listTools();
  {
    await using second = await connect({ ...other, env });
    await second.client.listTools();
    await page.until(`${tabWith(ws)} && ${tabWith(other)}`);
    assert.equal((await first.client.callTool(write("a.txt"))).isError, true);
    await page.until(QUESTION);
    assert.match(await textOf(page), /Waiting \(1\)[^]*a\.txt/);
    await click(page, button("Yes"));
    await page.until(`!(${QUESTION})`);
    assert.equal((await first.client.callTool(write("a.txt"))).isError ?? false, false);
    assert.equal(await Deno.readTextFile(ws.file("a.txt")), "from a call");
    await second.client.callTool(write("b.txt"));
    const tab = await chromium.page(served.origin);
    await tab.go("/");
    await tab.until(QUESTION);
    await page.loading(() => page.send("Page.reload"));
    await page.until(QUESTION);
    assert.ok((await textOf(page)).includes(other.path));
    await click(tab, button("No"));
    await page.until(`!(${QUESTION})`);
    assert.equal((await second.client.callTool(write("b.txt"))).isError, true);
    assert.deepEqual(faultsOf(tab), []);
  }
  await page.until("document.querySelector('.banner')?.innerText.includes('has ended')");
  assert.deepEqual(faultsOf(page), []);
});

Deno.test("a question in the form of a client is answered on the page for its session", async () => {
  await using ws = await makeWorkspace();
  const form = Promise.withResolvers<{ readonly action: "cancel" }>();
  await using pml = await connect(ws, { elicit: () => form.promise });
  await pml.client.listTools();
  await using served = await openPage(ws);
  await using browser = await browse(served);
  const { page } = browser;
  const calling = pml.client.callTool(folder("a"));
  calling.catch(() => {}); // the assertion below reports it
  await page.until(QUESTION);
  await click(page, button("For this session"));
  assert.equal((await calling).isError ?? false, false);
  await page.until(`!(${QUESTION})`);
  form.resolve({ action: "cancel" });
  assert.equal((await pml.client.callTool(folder("b"))).isError ?? false, false);
  await show(page, "#/rules", "Rules");
  await page.until(
    `${element("tr", "filesystem:create_directory")}?.innerText.includes("session")`,
  );
});

Deno.test("a user tries a tool, adds and restarts a server, and looks at the story of a call", async () => {
  await using ws = await makeWorkspace();
  await using pml = await connect(ws);
  await pml.client.listTools();
  await using served = await openPage(ws);
  await using browser = await browse(served);
  const { page } = browser;
  await show(page, "#/tools", "Tools");
  await page.until(`${element(".tools a", "filesystem:write_file")} !== undefined`);
  await page.click(element(".tools a", "filesystem:write_file"));
  await page.until(`${field("path")} !== null`);
  await page.fill(field("path"), "tried.txt");
  await page.fill(field("content"), "by the user");
  await click(page, button("Call"));
  await page.until(`document.querySelector('.try .question') !== null`);
  await click(page, button("Yes"));
  await page.until("document.querySelector('.answer')?.innerText.includes('done')");
  assert.equal(await Deno.readTextFile(ws.file("tried.txt")), "by the user");

  await show(page, "#/servers", "Servers");
  await page.click(element("summary", "Add servers"));
  const { command, args } = denoServer("tests/kit/echo_server.ts");
  await page.fill(field("source"), [command, ...args].join(" "));
  await page.fill(field("name"), "echo");
  await click(page, button("Show the plan"));
  await page.until(`${button("Make this change")} !== undefined`);
  assert.match(await textOf(page), /echo_server\.ts/);
  await click(page, button("Make this change"));
  await page.until("document.querySelector('select[name^=\"echo:\"]') !== null");
  await click(page, button("Make this change"));
  await page.until(`${element("article.card h3", "echo")} !== undefined`);
  assert.equal(
    (await pml.client.callTool({ name: "search", arguments: { query: "echo" } })).isError ?? false,
    false,
  );

  const list = { tool: "filesystem:list_directory", arguments: { path: "." } };
  await pml.client.callTool({ name: "call", arguments: list });
  const restart = `document.querySelector('[aria-label="Restart filesystem"]')`;
  await click(page, restart);
  await page.until("document.querySelector('.notice') !== null");

  const code = 'await mcp.filesystem.read_file({ path: "tried.txt" }); ' +
    'return await mcp.filesystem.list_directory({ path: "." })';
  await pml.client.callTool({ name: "execute_code", arguments: { code } });
  await show(page, "#/activity", "Activity");
  await page.until(`${element(".long .what a", "filesystem:write_file")} !== undefined`);
  await page.click(element(".long .what a", "filesystem:write_file"));
  await page.until("document.querySelectorAll('.steps li').length > 0");
  await page.click(element(".long .what a", "filesystem:read_file"));
  await page.until("document.querySelectorAll('.picture li').length === 2");
  assert.deepEqual(faultsOf(page), []);
});

Deno.test("a pause on the page refuses calls until it is lifted there", async () => {
  await using ws = await makeWorkspace();
  await using pml = await connect(ws);
  await pml.client.listTools();
  await using served = await openPage(ws);
  await using browser = await browse(served);
  const { page } = browser;
  const list = { tool: "filesystem:list_directory", arguments: { path: "." } };
  await page.until(tabWith(ws));
  await click(page, button("Pause"));
  await page.until(isActive(button("Resume")));
  const { content } = await pml.client.callTool({ name: "call", arguments: list });
  assert.match(JSON.stringify(content), /PAUSED/);
  await click(page, button("Resume"));
  await page.until(isActive(button("Pause")));
  const again = await pml.client.callTool({ name: "call", arguments: list });
  assert.equal(again.isError ?? false, false);
  assert.deepEqual(faultsOf(page), []);
});

Deno.test("a link that is used again ends the session, and another site reaches nothing", async () => {
  await using ws = await makeWorkspace();
  await using served = await openPage(ws);
  await using browser = await browse(served);
  const { page, chromium } = browser;
  // A development server of a clone, which gets the cookie of 127.0.0.1, too.
  const cookies: string[] = [];
  await using site = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (request) => {
      cookies.push(request.headers.get("cookie") ?? "");
      return new Response("<!doctype html><title>clone</title><h1>clone</h1>", {
        headers: { "content-type": "text/html" },
      });
    },
  );
  const clone = await chromium.page(`http://127.0.0.1:${site.addr.port}`);
  await clone.go("/");
  await clone.until("document.querySelector('h1') !== null");
  assert.match(cookies.join(), /pml_page/);
  const attack = await clone.send("Runtime.evaluate", {
    expression: `(async () => {
      const at = ${JSON.stringify(served.origin)};
      const results = [];
      const attempts = [
        ["/api/state", { credentials: "include" }],
        ["/api/state", { credentials: "include", mode: "no-cors" }],
        ["/api/answer", { credentials: "include", mode: "no-cors", method: "POST", body: "{}" }],
        ["/", { credentials: "include" }],
      ];
      for (const [path, init] of attempts) {
        const result = await fetch(at + path, init).then((one) => one.type + one.status, String);
        results.push(result);
      }
      const frame = document.createElement("iframe");
      frame.src = at + "/";
      document.body.append(frame);
      await new Promise((resolve) => frame.onload = resolve);
      let inner = "opaque";
      try { inner = frame.contentDocument?.title ?? "opaque"; } catch {}
      return [...results, inner];
    })()`,
    ...{ awaitPromise: true, returnByValue: true },
  });
  const [read, , , , inner] = attack.result.value;
  assert.match(String(read), /TypeError/);
  assert.equal(inner, "opaque");
  const replayed = await fetch(`${served.origin}/api/state`, {
    headers: { cookie: cookies.find((one) => one !== "") ?? "" },
  });
  assert.equal(replayed.status, 401);
  await replayed.body?.cancel();

  const thief = await openChromium();
  await using _ = thief;
  const stolen = await thief.page(served.origin);
  await stolen.go(served.link.slice(served.origin.length));
  await stolen.until("document.querySelector('h1')?.textContent.startsWith('Sign in')");
  await page.until("document.querySelector('h1').textContent.startsWith('Sign in')");
});

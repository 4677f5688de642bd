/**
 * The pages of a spawned hub in a headless Chromium.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type Chromium, openChromium, type Page } from "./kit/chromium.ts";
import { moduleOffer, packageOffer, put, spawnHub, type TestHub } from "./kit/hub.ts";

/** Text that a hostile author writes into each field. */
const LIVE =
  `<script>alert(1)</script><img src=x onerror=alert(2)>"'><a href="javascript:alert(3)">` +
  "</title></style></pre><form action=https://evil.example><base href=//evil.example>&lt;b&gt;";
const MARKS = ["</code></pre><script>alert(4)</script>", "\u202e\u200b", "x".repeat(3_000)];

async function opened(hub: TestHub): Promise<{ readonly chromium: Chromium; readonly page: Page }> {
  const chromium = await openChromium();
  return { chromium, page: await chromium.page(hub.url.replace(/\/mcp$/, "")) };
}

const text = async (page: Page) => String(await page.value("document.body.innerText"));

function sideways(page: Page): Promise<number> {
  return page.value("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

/** Asserts that a page's accessibility tree is in order, and every control has a name. */
async function assertAccessible(page: Page): Promise<void> {
  const nodes = await page.accessibility();
  const controls = nodes.filter(({ role }) =>
    ["link", "button", "searchbox", "combobox"].includes(role)
  );
  assert.ok(controls.length > 2);
  for (const { role, name } of controls) assert.ok(name.trim() !== "", `a ${role} has no name`);
  const levels: readonly number[] = await page.value(
    "[...document.querySelectorAll('h1, h2, h3, h4')].map(({ tagName }) => Number(tagName[1]))",
  );
  assert.equal(levels[0], 1);
  for (const [at, level] of levels.entries()) assert.ok(level <= (levels[at - 1] ?? 1) + 1);
  assert.equal(nodes.filter(({ role }) => role === "main").length, 1);
}

Deno.test("a user finds an entry by the keyboard, and sees its code, permissions, hashes and versions", async () => {
  await using hub = await spawnHub();
  const { key } = await hub.key("acme");
  const old = moduleOffer("hello", "1.0.0");
  const fresh = moduleOffer("hello", "1.1.0", "good day ");
  const manifest = { ...fresh.manifest, env_required: ["GREETING"] };
  for (const offer of [old, { ...fresh, manifest }, packageOffer("weather", "2.0.0")]) {
    assert.equal((await put(hub.url, key, offer)).status, 201);
  }
  const { chromium, page } = await opened(hub);
  await using _ = chromium;
  await page.go("/");
  assert.match(await text(page), /weather/);
  await assertAccessible(page);
  await page.press("Tab");
  assert.equal(await page.value("document.activeElement.textContent"), "Skip to the content");
  for (const _ of [1, 2]) await page.press("Tab");
  await page.type("greet");
  await page.loading(() => page.press("Enter"));
  assert.match(await page.value("location.href"), /\/search\?q=greet$/);
  assert.match(await text(page), /hello[^]*1\.1\.0/);
  assert.ok(!(await text(page)).includes("weather"));
  await assertAccessible(page);
  await page.loading(() =>
    page.value("document.querySelector('main a[href=\"/entry/hello\"]').click()")
  );
  const output = await text(page);
  assert.ok(output.includes(`"registries": ["${hub.url}"]`), output);
  for (
    const wanted of ["pml call hello:greet", "GREETING", `${fresh.manifest.integrity}`, "acme"]
  ) {
    assert.ok(output.includes(wanted), `${wanted} is missing: ${output}`);
  }
  assert.match(output, /Not signed/);
  const code = String(await page.value("document.querySelector('pre.code').innerText"));
  assert.equal(code.replace(/\n\n/g, "\n").trim(), String(fresh.code).trim());
  await assertAccessible(page);
  await page.go("/entry/hello/diff?from=1.0.0&to=1.1.0");
  const diff = await text(page);
  assert.match(diff, /Asks for the variable GREETING/);
  const lines = async (tag: string) =>
    String(
      await page.value(
        `[...document.querySelectorAll("pre ${tag}")].map((e) => e.innerText).join()`,
      ),
    );
  assert.match(await lines("ins"), /good day/);
  assert.match(await lines("del"), /hello /);
  await assertAccessible(page);
  for (
    const path of ["/entry/none", "/entry/A%20b", "/entry/hello@9.9.9", "/entry/hello/diff?from=7"]
  ) {
    await page.go(path);
    assert.match(await text(page), /no such|not the name/i, path);
    await assertAccessible(page);
  }
  const faults = page.faults.filter((one) => !/status of 40[04]/.test(one));
  assert.deepEqual(faults, []);
});

Deno.test("the notice of a yanked version is on its own page only, and a waiting version has no page", async () => {
  await using hub = await spawnHub();
  const { key } = await hub.key("acme");
  for (const version of ["1.0.0", "1.1.0"]) await put(hub.url, key, moduleOffer("hello", version));
  await hub.run("yank", "hello@1.1.0", "--reason", "it <b>leaks</b>");
  const get = async (path: string) => {
    const headers = { accept: "text/html" };
    const response = await fetch(hub.url.replace(/\/mcp$/, path), { headers });
    return { status: response.status, body: await response.text() };
  };
  assert.match((await get("/entry/hello@1.1.0")).body, /it &lt;b&gt;leaks&lt;\/b&gt;/);
  const newest = (await get("/entry/hello")).body;
  assert.ok(newest.includes("1.0.0") && !newest.includes("leaks"));
  for (const path of ["/", "/search"]) assert.ok(!(await get(path)).body.includes("1.1.0"), path);
  await hub.run("yank", "hello@1.0.0");
  assert.equal((await get("/entry/hello")).status, 404);
});

/** Adds entries that publishing over the network would refuse. */
async function importHostile(hub: TestHub): Promise<void> {
  const hostile = {
    type: "stdio",
    version: "1.0.0",
    description: LIVE + MARKS.join(" "),
    install: { command: "npx", args: ["-y", `x@${"1".repeat(400)}`, LIVE.replace(/[${}]/g, "")] },
    warnings: [LIVE, ...MARKS],
    tools: [{
      name: "look",
      description: LIVE,
      inputSchema: { type: "object", description: LIVE },
    }],
  };
  const code =
    `// ${LIVE}\n// ${MARKS[2]}\nexport const __meta__ = { name: "bad", version: "1.0.0", ` +
    `description: ${JSON.stringify(LIVE)}, tools: { a: { description: ${
      JSON.stringify(LIVE)
    } } } };\n` +
    "export const a = () => 1;\n";
  await Deno.mkdir(hub.ws.file("served"));
  await Deno.writeTextFile(hub.ws.file("served/hostile.json"), JSON.stringify(hostile));
  await Deno.writeTextFile(hub.ws.file("served/bad.ts"), code);
  await Deno.writeTextFile(
    hub.ws.file("served/bad@2.0.0.ts"),
    code.replace('version: "1.0.0", ', ""),
  );
  const imported = await hub.run("import", "served");
  assert.equal(imported.code, 0, imported.stderr);
}

Deno.test("no text of a publisher is active on a page, or links to another site", async () => {
  await using hub = await spawnHub();
  await importHostile(hub);
  const { chromium, page } = await opened(hub);
  await using _ = chromium;
  const q = encodeURIComponent("<script>alert(5)</script>\"'");
  const paths = [
    "/",
    "/search",
    `/search?q=${q}`,
    "/entry/hostile",
    "/entry/bad",
    "/entry/bad/diff",
  ];
  for (const width of [1280, 360]) {
    for (const scheme of ["light", "dark"] as const) {
      await page.look({ width, scheme });
      for (const path of paths) {
        await page.go(path);
        assert.ok(await sideways(page) <= 0, `${path} is wider than ${width}`);
        assert.equal(await page.value("document.scripts.length"), 0, path);
      }
    }
  }
  await page.go("/entry/hostile");
  assert.ok((await text(page)).includes("<script>alert(1)</script>"));
  assert.equal(await page.value("document.querySelectorAll('form').length"), 1);
  const links = await page.value(
    "[...document.links].every(({ href }) => href.startsWith(location.origin))",
  );
  assert.equal(links, true);
  assert.deepEqual(page.faults, []);
  const origin = hub.url.replace(/\/mcp$/, "");
  const { headers } = await fetch(`${origin}/`, { headers: { accept: "text/html" } });
  const policy = headers.get("content-security-policy") ?? "";
  for (
    const part of [
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ]
  ) {
    assert.ok(policy.includes(part), policy);
  }
  assert.ok(!/script-src|unsafe/.test(policy), policy);
});

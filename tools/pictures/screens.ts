/**
 * Takes pictures of the page of `pml page` in both themes, from a real run: a client made calls, and
 * one call waits for approval. No test compares the pictures, because browsers draw fonts differently.
 *
 * @module
 */

import { openChromium, type Page } from "../../tests/kit/chromium.ts";
import { connect } from "../../tests/kit/client.ts";
import { openPage } from "../../tests/kit/page.ts";
import { denoServer } from "../../tests/kit/pml_command.ts";
import { makeWorkspace, type Workspace } from "../../tests/kit/workspace.ts";

/** The folder of the pictures. */
export const SCREENS = "docs/screens";

const WIDTH = 1200;
const HEIGHT = 860;
const SERVERS = ["tracker", "mail", "calendar"];
const CALLS = [
  { tool: "filesystem:list_directory", arguments: { path: "." } },
  { tool: "filesystem:read_file", arguments: { path: "README.md" } },
  { tool: "filesystem:search_files", arguments: { path: ".", pattern: "*.md" } },
  { tool: "filesystem:read_file", arguments: { path: "CHANGES.md" } },
];
const WAITING_CALL = {
  tool: "filesystem:write_file",
  arguments: { path: "CHANGES.md", content: "- The basket keeps its items after a sign-in" },
};
/** The wait after a change of the window, in milliseconds: the buttons are disabled for a while. */
const REST_MS = 1_500;

/** Returns the pictures by the names of their files. */
export async function screens(): Promise<Readonly<Record<string, Uint8Array>>> {
  const pairs = SERVERS.map((name) => [name, denoServer("tools/pictures/one_server.ts", name)]);
  await using ws = await makeWorkspace({
    files: { "README.md": "# The shop\n" },
    pml: { mcpServers: Object.fromEntries(pairs) },
  });
  await using pml = await connect(ws, { clientName: "claude-code" });
  await pml.client.listTools();
  for (const call of [...CALLS, WAITING_CALL]) {
    await pml.client.callTool({ name: "call", arguments: call });
  }
  await using served = await openPage(ws);
  await using chromium = await openChromium();
  const page = await chromium.page(served.origin);
  await page.go(served.link.slice(served.origin.length));
  await page.until(`document.querySelector('.replies [aria-disabled="false"]') !== null`);
  await page.until("document.querySelectorAll('.calls .row').length > 4");
  return {
    "page-light.png": await takePicture(page, { ws, scheme: "light" }),
    "page-dark.png": await takePicture(page, { ws, scheme: "dark" }),
  };
}

async function takePicture(
  page: Page,
  { ws, scheme }: { readonly ws: Workspace; readonly scheme: "light" | "dark" },
): Promise<Uint8Array> {
  await page.look({ width: WIDTH, scheme });
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  await page.until(`document.querySelector('.replies [aria-disabled="false"]') !== null`);
  await page.value(`(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      node.data = node.data.replaceAll(${JSON.stringify(ws.path)}, "~/shop");
      if (node.data === "ws") node.data = "shop";
    }
  })()`);
  return await page.picture(HEIGHT);
}

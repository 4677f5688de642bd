/**
 * Compares the texts of `pml page` with a golden file.
 *
 * @module
 */

import assert from "node:assert/strict";
import { assertGolden } from "../kit/golden.ts";
import { openPage } from "../kit/page.ts";
import { runPml } from "../kit/run.ts";
import { makeWorkspace } from "../kit/workspace.ts";

Deno.test("pml page prints a link, and the line of a tunnel where it may need one", async () => {
  await using ws = await makeWorkspace();
  await using page = await openPage(ws);
  const port = `${page.port}`;
  const textOf = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const { stdout, stderr } = await runPml(ws, ["page", ...args], { env });
    return `${stdout}${stderr}`.replaceAll(/#[\w-]{43}/g, "#<SECRET>");
  };
  assertGolden("page/without a browser", await textOf(["--no-open"]), { PORT: port });
  const SSH_CONNECTION = "192.0.2.1 50000 192.0.2.2 22";
  const remote = await textOf([], { SSH_CONNECTION, USER: "ann" });
  assertGolden("page/over SSH", remote, { PORT: port });
  const contained = await textOf([], { container: "docker" });
  assertGolden("page/in a container", contained, { PORT: port });
  assertGolden("page/as JSON", await textOf(["--no-open", "--json"]), { PORT: port });
  await using other = await makeWorkspace();
  for (const [title, wish] of [["a port in use", port], ["a wrong port", "70000"]] as const) {
    const { code, stderr } = await runPml(other, ["page", "--port", wish]);
    assert.equal(code, 2);
    assertGolden(`page/${title}`, stderr, { PORT: port });
  }
});

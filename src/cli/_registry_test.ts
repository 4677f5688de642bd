import assert from "node:assert/strict";
import { serveRegistry } from "./_registry.ts";

Deno.test("registry() reports files that it cannot serve before it opens anything", async () => {
  const rows = [
    [["publish", "."], {}, 'Cannot run "pml registry publish .": unknown subcommand "publish"'],
    [["serve", "nowhere"], {}, 'Cannot serve "nowhere": there is no such folder'],
    [["serve", "deno.json"], {}, 'Cannot serve "deno.json": there is no such folder'],
    [
      ["serve", "."],
      { port: "70000" },
      'Cannot listen at port "70000": it is not a number up to 65535',
    ],
    [["serve", "."], { key: "nowhere.pem" }, 'Cannot sign with "nowhere.pem": it cannot be read'],
    [
      ["serve", "."],
      { key: "deno.json" },
      'Cannot sign with "deno.json": it is in the folder that is served',
    ],
    [
      ["serve", "."],
      { port: "80a" },
      'Cannot listen at port "80a": it is not a number up to 65535',
    ],
  ] as const;
  for (const [words, options, message] of rows) {
    await assert.rejects(serveRegistry({ words, ...options }), { code: "USAGE", message });
  }
});

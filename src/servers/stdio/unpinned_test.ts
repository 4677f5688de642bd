import assert from "node:assert/strict";
import { unpinnedPackages } from "./unpinned.ts";

Deno.test("unpinnedPackages() lists the packages that a command installs without an exact version", () => {
  const lines: Record<string, readonly string[]> = {
    "npx -y tiny": ["tiny"],
    "npx -y @a/tiny@latest": ["@a/tiny@latest"],
    "npx -y tiny@^1.0.0": ["tiny@^1.0.0"],
    "npx -y tiny@1": ["tiny@1"],
    "npx -y @a/tiny@1.0.0-rc.1": [],
    "bunx tiny@1.0.0 --flag": [],
    "pnpm dlx tiny": ["tiny"],
    "uvx tiny": ["tiny"],
    "uvx tiny@1.2": [],
    "uvx --from tiny[cli]>=1.2 run": ["tiny[cli]>=1.2"],
    "uvx --with other tiny==1.2.*": ["tiny==1.2.*", "other"],
    "uvx --from tiny~=1.2 run": ["tiny~=1.2"],
    // A refused command installs nothing, nor does a program that is not an installer.
    "pipx run tiny": [],
    "npx -y https://example.com/tiny.tgz": [],
    "serena --http": [],
  };
  for (const [line, unpinned] of Object.entries(lines)) {
    const [command = "", ...args] = line.split(" ");
    assert.deepEqual(unpinnedPackages({ name: "s", command, args }), unpinned, line);
  }
});

/**
 * Files of a workspace that try to replace the imports of an installed PML.
 *
 * @module
 */

/** Code that fails when it runs. */
const EVIL = `throw new Error("EVIL ran");`;
const PACKAGES = ["zod", "@modelcontextprotocol/server", "commander", "yaml", "jsonc-parser"];

/** The files of a folder that would run its own code instead of PML's. */
export const HOSTILE: Record<string, string> = {
  "README.md": "# Hello from the workspace\n",
  "evil.ts": EVIL,
  "deno.json": JSON.stringify({
    imports: Object.fromEntries(
      [...PACKAGES, "@casys/pml", "jsr:@casys/pml"].map((name) => [name, "./evil.ts"]),
    ),
    nodeModulesDir: "manual",
    lock: { frozen: true },
    unstable: ["bare-node-builtins"],
  }),
  "deno.lock": `{ "version": "5", "specifiers": { "jsr:@casys/pml@*": "99.0.0" } }`,
  ".npmrc": "registry=http://127.0.0.1:1/\n",
  "package.json": JSON.stringify({
    type: "commonjs",
    imports: { "#core": "./evil.ts" },
    dependencies: Object.fromEntries(PACKAGES.map((name) => [name, "file:./node_modules/zod"])),
    scripts: { preinstall: "echo EVIL", postinstall: "echo EVIL" },
  }),
  ...Object.fromEntries(PACKAGES.flatMap((name) => [
    [`node_modules/${name}/package.json`, JSON.stringify({ name, version: "9.9.9", main: "i.js" })],
    [`node_modules/${name}/i.js`, EVIL],
  ])),
};

/**
 * The commands that set PML up, their options and their help.
 *
 * @module
 */

import { audit, AUDIT_OPTIONS } from "./_audit.ts";
import { check } from "./_check.ts";
import { config } from "./_config.ts";
import { doctor } from "./_doctor.ts";
import { inContext } from "./_command_context.ts";
import { importServers } from "./_import.ts";
import { init } from "./_init.ts";
import { key } from "./_key.ts";
import { learn } from "./_learn.ts";
import { registry } from "./_registry.ts";
import { serve, SERVE_OPTIONS } from "./_serve.ts";
import { IN_WORKSPACE } from "./_server_commands.ts";
import { stdio } from "./_stdio.ts";
import { token } from "./_token.ts";
import { update } from "./_update.ts";
import { uninstall } from "./_uninstall.ts";
import type { CommandRow } from "./_commands.ts";

const JSON_OPTION = { "--json": "print JSON" };

/** The commands that set PML up. */
export const SETUP_COMMANDS: readonly CommandRow[] = [
  {
    usage: "init",
    does: "write .mcp.json and .pml.json into the workspace, and connect your clients",
    options: {
      ...JSON_OPTION,
      "--yes": "take the defaults and ask nothing",
      "--client [names]": "connect these clients instead, or all that are found here",
      "--user": "write into the client's file for all your projects",
      "--dry-run": "only show it",
      "--undo": "put the files of clients back as they were",
      "--http": "have Claude Code use `pml serve` instead of starting PML itself",
    },
    examples: ["pml init", "pml init --client cursor,zed", "pml init --client --dry-run"],
    run: inContext(init),
  },
  {
    usage: "update",
    does: "say whether there is a newer PML, what changed, and how to install it",
    options: JSON_OPTION,
    examples: ["pml update"],
    run: inContext(update),
  },
  {
    usage: "uninstall",
    does: "show everything that PML keeps on this machine, and remove it",
    options: { "--json": "only show it, as JSON" },
    examples: ["pml uninstall --json", "pml uninstall"],
    run: inContext(uninstall, { broken: true }),
  },
  {
    usage: "import [client-or-file]",
    does: "list the MCP servers of your clients, or import those of one into PML",
    options: {
      "--json": "only show it, as JSON",
      "--dry-run": "only show it",
      "--workspace": IN_WORKSPACE,
      "--undo": "restore the file as it was before the last import",
    },
    examples: ["pml import", "pml import cursor", "pml import --workspace .mcp.json"],
    run: inContext(importServers),
  },
  {
    usage: "learn <server> [calls...]",
    does: "run an npm server confined, and propose the smallest grants that it works with",
    options: { "--json": "only run it, and show the result as JSON" },
    examples: ["pml learn memory", `pml learn github github:search_code '{"q": "x"}'`],
    run: inContext(learn),
  },
  {
    usage: "config [what] [words...]",
    does: "show the settings and their cost in tokens, or change them: show, set, intent [text]",
    options: {
      "--json": "only show it, as JSON",
      "--preset <name>": "use a preset: meta_only, semantic, hybrid_balanced, ...",
      "--wizard": "ask a few questions, measure your servers, and recommend a preset",
      "--workspace": IN_WORKSPACE,
    },
    examples: [
      "pml config",
      "pml config --preset balanced",
      "pml config set limits.children 4",
      `pml config intent "TypeScript web app with PostgreSQL"`,
    ],
    run: inContext(config),
  },
  {
    usage: "key <what> [name] [command...]",
    does: "keep a key for your servers, unseen, or say which program has it; list, or remove one",
    options: { ...JSON_OPTION, "--stdin": "read the key from stdin" },
    examples: [
      "pml key set GITHUB_TOKEN",
      "pml key from GITHUB_TOKEN -- op read op://Private/GitHub/token",
      "pml key list",
      "pml key remove GITHUB_TOKEN",
    ],
    run: inContext(key),
  },
  {
    usage: "audit [what]",
    does: "show the journal of calls, or check that nobody changed it: verify",
    options: AUDIT_OPTIONS,
    examples: ["pml audit --failed --since 2h", "pml audit verify"],
    run: audit,
  },
  {
    usage: "doctor",
    does: "check whether everything works, and say what to do if not",
    options: JSON_OPTION,
    examples: ["pml doctor"],
    run: inContext(doctor, { broken: true }),
  },
  {
    usage: "check <file>",
    does: "check a module for its author; it runs only inside the sandbox",
    options: {
      ...JSON_OPTION,
      "--types": "check its types, too (the default)",
      "--no-types": "do not check its types",
    },
    examples: ["pml check weather.ts", "pml check --no-types --json weather.ts"],
    run: inContext(check, { broken: true }),
  },
  {
    usage: "dev <file>",
    does: "follow a module while it is written: check each save, call its tools",
    options: { ...JSON_OPTION, "--no-types": "do not check its types" },
    examples: ["pml dev weather.ts"],
    run: inContext(async (at, typed) => await (await import("./_dev.ts")).dev(at, typed)),
  },
  {
    usage: "registry <serve> <folder>",
    does: "serve a folder of modules and manifests as a registry, read-only, until it is stopped",
    options: {
      "--json": "print the address as JSON",
      "--port <number>": "the port; 3004 by default, 0 for any free port",
      "--host <address>":
        "the address; 127.0.0.1 by default; others can read the folder at any other",
      "--key <file>": "sign what is served with this Ed25519 key (PEM)",
      "--url <address>": "the address that clients use, if it is another one; it is signed, too",
    },
    examples: ["pml registry serve ./servers", "pml registry serve --port 0 --json ./servers"],
    run: registry,
  },
  {
    usage: "stdio",
    does: "serve MCP on stdin and stdout until the client hangs up, as clients start it",
    examples: ["claude mcp add pml -- pml stdio"],
    run: stdio,
  },
  {
    usage: "serve",
    does: "serve MCP over HTTP at http://127.0.0.1:3003/mcp until it is stopped",
    options: SERVE_OPTIONS,
    examples: ["pml serve", "pml serve --port 0 --json", "pml serve --token-env MY_TOKEN"],
    run: serve,
  },
  {
    usage: "token <what> [name]",
    does: "let others use `pml serve` with rules of their own: new, list, revoke",
    options: JSON_OPTION,
    examples: ["pml token new ci", "pml token list", "pml token revoke ci"],
    run: inContext(token),
  },
];

/**
 * The command line of the hub.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";
import { backup, restore } from "./_store.ts";
import { importFolder } from "./_import.ts";
import { keys, owners } from "./_keys.ts";
import { moderate, yank } from "./_moderate.ts";
import { keepOnTerminal, print, printToStderr } from "./out.ts";
import { publishFile, yankRemote } from "./_publish.ts";
import { serve } from "./_serve.ts";
import { type CommandLine, parseCommandLine, usage } from "./_command_line.ts";

/** The version of this program. */
export const VERSION = "0.1.0";

const HELP = `Usage: pml-hub COMMAND [OPTIONS]

A registry that a team hosts for itself.

Publishers:
  publish FILE          publishes a module, which it bundles, or a manifest at --to URL
  publish NAME@VERSION  publishes a capability that \`pml capability save\` saved
  yank NAME@VERSION     hides a version at --to URL; unyank shows it again

The operator, in the folder of the hub:
  serve                 serves clients until it receives SIGINT or SIGTERM
  import FOLDER         adds what \`pml registry serve FOLDER\` would serve
  backup FILE           writes all data into a new file, also while the hub runs
  restore FILE          fills a new folder, or an empty database, from a backup
  key add ORGANISATION  creates a key for the organisation to publish with, and prints it once
                        (--client: a key for clients, see --require-api-key)
  key list              lists the keys
  key revoke ID         revokes a key at once, also for running requests
  give NAMESPACE ORG    gives a namespace to an organisation
  owners                lists the namespaces and their owners
  waiting               lists the versions that wait for your decision, with the HASH of each
                        (see --moderated)
  accept NAME@VERSION HASH
                        publishes a waiting version
  reject NAME@VERSION HASH
                        removes a waiting version
  yank NAME@VERSION     hides a version; users who pinned it still get it (--reason TEXT)
  unyank NAME@VERSION   shows it again

Options:
  --data FOLDER         the folder of the hub (default: hub-data)
  --host HOST           the address to listen on (default: 127.0.0.1)
  --port PORT           the port; 0 takes a free one (default: 3005)
  --url URL             the address for clients, if the hub is behind a proxy
  --behind-proxy        allows a --host that other machines reach, for a proxy that adds TLS
  --upstream HOST:PORT  lets the hub connect to servers at this private address; repeatable
  --moderated           new versions wait until you accept them
  --require-api-key     clients need a key; PML reads it from PML_API_KEY
  --rate NUMBER         the changes that each key may make in a minute (default: 60)
  --key FILE            signs the entries of \`serve\` and \`publish\` with this Ed25519 key (PEM)
  --to URL              the hub at which to publish
  --checkpoint HASH     restores the backup only if \`backup\` printed this checkpoint for it
  --tag TAG             sets this tag to the published version
  --dry-run             shows what would be published
  --yes                 publishes without asking
  --metrics PORT        serves metrics for Prometheus at 127.0.0.1:PORT/metrics
  --log json            writes a JSON line about each request to stderr
  --json                prints JSON
  --version             prints the version
  --help                prints this text

Environment:
  PML_HUB_KEY           the key of the publisher, for \`publish\`, \`yank\` and \`unyank\` with --to
  DATABASE_URL          stores all data on a PostgreSQL server instead of in --data

Examples:
  pml-hub import ./servers --data /srv/hub
  pml-hub serve --data /srv/hub --url https://hub.example.com/mcp`;

/** Runs a command, and returns the exit code: 0, 1, or 2 if the command line is wrong. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    return await command(parseCommandLine(args));
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    const { code, message, hint } = error;
    printToStderr(`error: ${code}: ${message}${hint === undefined ? "" : `\n  ${hint}`}`);
    return code === "USAGE" || code === "CONFIG_INVALID" ? 2 : 1;
  }
}

async function command(commandLine: CommandLine): Promise<number> {
  const { verb, operand: file, data, isVersion, isHelp } = commandLine;
  if (isVersion) return finish(VERSION);
  if (isHelp || verb === "") return finish(HELP);
  switch (verb) {
    case "serve":
      return await serve(commandLine);
    case "import":
      return await importFolder(commandLine);
    case "backup":
      finish(`Wrote ${quoted(file, 300)}\nCheckpoint: ${await backup(data, file)}`);
      keepOnTerminal();
      return 0;
    case "restore":
      await restore(commandLine);
      return finish(`Restored ${quoted(data, 300)} from ${quoted(file, 300)}`);
    case "key add":
    case "key list":
    case "key revoke":
      return await keys(commandLine);
    case "give":
    case "owners":
      return await owners(commandLine);
    case "waiting":
    case "accept":
    case "reject":
      return await moderate(commandLine);
    case "publish":
      return await publishFile(commandLine);
    case "yank":
    case "unyank":
      return await (commandLine.to === undefined ? yank : yankRemote)(commandLine);
    default:
      throw usage(`Cannot run ${quoted(verb)}: there is no such command`);
  }
}

function finish(text: string): number {
  print(text);
  return 0;
}

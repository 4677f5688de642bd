/**
 * `pml install --offline-ready`: fetches packages in advance that are otherwise fetched at their
 * first use.
 *
 * @module
 */

import { counted } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { visible } from "../core/json.ts";
import { findKind } from "../servers/kinds.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { tell } from "./out.ts";

/** The packages of npm that PML imports. Most of them are loaded only when they are needed. */
export const PACKAGES: Readonly<Record<string, () => Promise<unknown>>> = {
  "canonicalize": () => import("canonicalize"),
  "commander": () => import("commander"),
  "es-module-lexer": () => import("es-module-lexer"),
  "jsonc-parser": () => import("jsonc-parser"),
  "negotiator": () => import("negotiator"),
  "oauth4webapi": () => import("oauth4webapi"),
  "@cfworker/json-schema": () => import("@cfworker/json-schema"),
  "smol-toml": () => import("smol-toml"),
  "tldts": () => import("tldts"),
};

/** A package, server or library to fetch. `get` returns quickly if it is installed already. */
interface OfflinePart {
  readonly kind: "package of PML" | "server" | "library of the search model";
  readonly name: string;
  readonly get: () => Promise<unknown>;
}

/** A part that could not be fetched. */
interface Failure extends Pick<OfflinePart, "kind" | "name"> {
  readonly code: string;
  readonly message: string;
  readonly hint: string | undefined;
}

/**
 * Fetches PML's own packages, the packages and modules of the configured servers, and the library of
 * the search model. After a failure it fetches the other parts.
 */
export async function installForOffline(
  context: CommandContext,
  { json }: CommandInput,
): Promise<CommandOutput> {
  const ready: Pick<OfflinePart, "kind" | "name">[] = [];
  const failed: Failure[] = [];
  for (const { kind, name, get } of await listParts(context)) {
    context.signal.throwIfAborted();
    try {
      if (!json && kind !== "package of PML") tell(`Fetching the ${kind} ${name}`);
      await get();
      ready.push({ kind, name });
    } catch (error) {
      const { code, message, hint } = asPmlError(error);
      failed.push({ kind, name, code, message, hint });
    }
  }
  const online = onlineServers(context);
  const value = { ready, failed, online };
  const pmlPackages = ready.filter(({ kind }) => kind === "package of PML");
  const lines = [
    `ready   ${counted(pmlPackages.length, "package")} of PML`,
    ...ready.filter((part) => !pmlPackages.includes(part)).map(({ kind, name }) =>
      `ready   ${name} (${kind})`
    ),
    ...failed.map(({ name, code, message, hint = "" }) =>
      `failed  ${name}: ${code}: ${visible(message, 1_000)}${hint && `\n        ${hint}`}`
    ),
    ...online.map((name) => `online  ${name} (server over HTTP: it always needs the network)`),
  ];
  const note = failed.length === 0 ? "Everything else works without a network now" : "";
  return { value, text: lines.join("\n"), note, code: failed.length === 0 ? 0 : 1 };
}

async function listParts({ app }: CommandContext): Promise<readonly OfflinePart[]> {
  const { machine } = await app.callPath();
  const finder = await app.finder();
  const { model } = app.config();
  const registered = app.servers.states().filter(({ name, kind, state }) =>
    app.directory.get(name).origin.isFetched && !isOnline(kind) && state !== "blocked"
  );
  const server = (name: string, get: OfflinePart["get"]): OfflinePart => ({
    kind: "server",
    name,
    get,
  });
  return [
    ...Object.entries(PACKAGES).map(([name, get]): OfflinePart => ({
      kind: "package of PML",
      name,
      get,
    })),
    ...machine.serversWithPackages().map((name) => server(name, () => machine.scriptsOf(name))),
    // The server of a registry is approved already, so it may start.
    ...registered.map(({ name }) => server(name, () => app.servers.lists.load(name))),
    ...(model === undefined ? [] : [
      {
        kind: "library of the search model",
        name: model,
        get: () => finder.installLibrary(),
      } satisfies OfflinePart,
    ]),
  ];
}

/** Returns the names of the servers that always need a network. */
function onlineServers({ app }: CommandContext): readonly string[] {
  return app.servers.states().filter(({ kind }) => isOnline(kind)).map(({ name }) => name);
}

function isOnline(kind: string): boolean {
  return findKind(kind)?.isOnline === true;
}

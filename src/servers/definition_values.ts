/**
 * Replaces variables in definitions: in commands, addresses and headers.
 *
 * @module
 */

import { resolve } from "node:path";
import type { Redactor } from "../audit/redact.ts";
import { filledAddress, plainValuesOf, variablesOfAddress } from "../core/server_address.ts";
import { envFilePath, type FileVariables } from "../config/env_file.ts";
import type { Keys } from "../config/keys.ts";
import type { DefinitionFiller } from "./host.ts";
import type {
  DefinitionTexts,
  ProgramDefinition,
  RemoteDefinition,
  ServerDefinition,
} from "./kind.ts";
import { definitionKindOf } from "./kinds.ts";
import { textsOfProgram } from "./stdio/kind.ts";
import { memoized } from "../core/memo.ts";
import type { Policy } from "../policy/policy.ts";
import type { HttpValues } from "./http/http_options.ts";
import { dataFolder, withDataFolder } from "./stdio/data_folder.ts";
import type { StdioValues } from "./stdio/program_host.ts";
import { certificatesOf } from "../policy/network.ts";

/** Returns the registry that defines a server. */
type RegistryOf = (server: string) => string | undefined;

/** The sources of values. */
interface ValueSources {
  readonly policy: Policy;
  readonly keys: Keys;
  readonly redactor: Redactor;
}

const NO_VALUES: ReadonlyMap<string, string> = new Map();
const SECRET_HEADER = /auth|key|token|secret|cookie/i;

/** Returns definitions with values: the same object as long as nothing of it changes. */
export class DefinitionValues implements DefinitionFiller {
  /** Returns a command with its arguments and environment. */
  readonly stdio: (own: ProgramDefinition) => StdioValues;
  /** Returns an address with its headers. */
  readonly http: (own: RemoteDefinition) => HttpValues;
  /** Returns the texts of a definition of any kind. */
  readonly filled: (own: ServerDefinition) => DefinitionTexts;
  readonly #sources: ValueSources;
  readonly #registryOf: RegistryOf | undefined;
  readonly #isFromRegistry: boolean;
  readonly #plain = new WeakMap<RemoteDefinition, ReadonlyMap<string, string>>();

  /** Takes the sources. `registryOf` is set if registries define the servers. */
  constructor(sources: ValueSources, registryOf?: RegistryOf) {
    this.#sources = sources;
    this.#registryOf = registryOf;
    this.#isFromRegistry = registryOf !== undefined;
    this.stdio = sources.keys.maker(
      textsOfProgram,
      (own, { command, args, cwd, env }, variables: FileVariables) => {
        const { config: { workspace, home }, loaded: { file } } = sources.policy.now;
        const { name, tools, confine = false } = own;
        const values = {
          args: Object.values(args),
          env: this.#isFromRegistry ? withoutEmpty(env, own.env) : env,
          cwd: resolve(workspace, cwd?.[""] ?? ""),
        };
        const filled = withDataFolder(values, dataFolder({ home, workspace, name }));
        return {
          name,
          command: command?.[""] ?? own.command,
          ...filled,
          env: { ...Object.fromEntries(variables), ...filled.env },
          isGuest: !(own.cwd ?? file?.servers.includes(own)),
          tools,
          confine,
          definition: own,
        };
      },
      (own) => sources.keys.variablesOf(envFilePath(own, sources.policy), own.name),
    );
    // Grants decide which hosts may be reached.
    const http = memoized((_grants: object) =>
      sources.keys.maker(
        ({ headers, oauth, url }: RemoteDefinition) => ({
          headers,
          oauth: { client_secret: oauth?.client_secret ?? "" },
          // Addresses of registries have no variables.
          url: this.#isFromRegistry
            ? {}
            : Object.fromEntries(variablesOfAddress(url).keys.entries()),
        }),
        (own, filled, plain: ReadonlyMap<string, string>) =>
          this.#overHttp(own, { ...filled, plain }),
        (own) => this.#plainValues(own),
      )
    );
    this.filled = sources.keys.maker(
      (own: ServerDefinition): DefinitionTexts => definitionKindOf(own).texts?.(own) ?? {},
      (_, filled) => filled,
      () => NO_VALUES,
    );
    this.http = (own) => http(sources.policy.now.config.grants)(own);
  }

  #overHttp(
    own: RemoteDefinition,
    filled: Pick<RemoteDefinition, "headers"> & {
      readonly oauth: { client_secret: string };
      readonly url: Readonly<Record<string, string>>;
      readonly plain: ReadonlyMap<string, string>;
    },
  ): HttpValues {
    const { name, isSse, tools, headers: written } = own;
    const values = { server: name, plain: filled.plain, keys: Object.values(filled.url) };
    const { url, requestUrl } = this.#isFromRegistry
      ? { url: own.url, requestUrl: own.url }
      : filledAddress(own.url, values);
    const headers = this.#isFromRegistry ? withoutEmpty(filled.headers, written) : filled.headers;
    const client_secret = filled.oauth.client_secret || undefined;
    if (client_secret !== undefined) this.#sources.redactor.register(client_secret);
    const oauth = own.oauth && { ...own.oauth, client_secret };
    // A key that is written in the file itself counts, too.
    const literal = Object.entries(headers).filter(([header]) => SECRET_HEADER.test(header));
    for (const [, value] of literal) this.#sources.redactor.register(value.replace(/^\w+\s+/, ""));
    // The query of an address that a variable contains may have keys.
    for (const value of new URL(requestUrl).searchParams.values()) {
      if (requestUrl !== url && !own.url.includes(value)) this.#sources.redactor.register(value);
    }
    const named = this.#namedBy(name, url);
    const certificates = certificatesOf({ ...own, url }, this.#sources.policy);
    const address = { name, url, requestUrl, isSse, named, certificates };
    return { ...address, headers, written, oauth, tools, definition: own };
  }

  /** Returns the values of the host of an address: the same object as long as none changes. */
  #plainValues(own: RemoteDefinition): ReadonlyMap<string, string> {
    const { plain } = variablesOfAddress(own.url);
    if (plain.length === 0 || this.#isFromRegistry) return NO_VALUES;
    const now = plainValuesOf(own.url, (name) => this.#sources.keys.plain(name));
    const before = this.#plain.get(own);
    if (before !== undefined && JSON.stringify([...before]) === JSON.stringify([...now])) {
      return before;
    }
    this.#plain.set(own, now);
    return now;
  }

  /** Returns the hosts that the user named. They may be on this machine, or in its network. */
  #namedBy(name: string, url: string): ReadonlySet<string> {
    const { grants } = this.#sources.policy.now.config;
    if (this.#registryOf === undefined) return new Set([new URL(url).host]);
    // A registry may name its own host, and hosts in the user's grants.
    const source = this.#registryOf(name) ?? "";
    const host = URL.parse(source.replace(/^mcp\+/, ""))?.host;
    return new Set([...host === undefined ? [] : [host], ...grants[name]?.net ?? []]);
  }
}

/** Removes optional variables of a registry's entry (`${NAME:-}`) that are not set. */
function withoutEmpty(
  filled: Readonly<Record<string, string>>,
  written: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const isLeft = (name: string, value: string) =>
    value === "" && /^\$\{\w+:-\}$/.test(written[name] ?? "");
  return Object.fromEntries(Object.entries(filled).filter(([name, value]) => !isLeft(name, value)));
}

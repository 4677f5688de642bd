/**
 * Replaces variables in definitions by their values: in commands, addresses and headers.
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

/** Returns the address of the registry that defines a server. */
type RegistryOf = (server: string) => string | undefined;

/** The sources of values. */
interface ValueSources {
  readonly policy: Policy;
  readonly keys: Keys;
  readonly redactor: Redactor;
}

const NO_VALUES: ReadonlyMap<string, string> = new Map();
const SECRET_HEADER = /auth|key|token|secret|cookie/i;

/** Fills in the variables of definitions. Returns the same object until a value changes. */
export class DefinitionValues implements DefinitionFiller {
  /** Returns a command with its arguments and environment. */
  readonly stdio: (definition: ProgramDefinition) => StdioValues;
  /** Returns an address with its headers. */
  readonly http: (definition: RemoteDefinition) => HttpValues;
  /** Returns the texts of a definition of any kind. */
  readonly fillTexts: (definition: ServerDefinition) => DefinitionTexts;
  readonly #sources: ValueSources;
  readonly #registryOf: RegistryOf | undefined;
  readonly #isFromRegistry: boolean;
  readonly #plain = new WeakMap<RemoteDefinition, ReadonlyMap<string, string>>();

  /** `registryOf` is set if registries define the servers. */
  constructor(sources: ValueSources, registryOf?: RegistryOf) {
    this.#sources = sources;
    this.#registryOf = registryOf;
    this.#isFromRegistry = registryOf !== undefined;
    this.stdio = sources.keys.maker(
      textsOfProgram,
      (definition, { command, args, cwd, env }, variables: FileVariables) => {
        const { config: { workspace, home }, loaded: { file } } = sources.policy.now;
        const { name, tools, confine = false } = definition;
        const values = {
          args: Object.values(args),
          env: this.#isFromRegistry ? withoutEmpty(env, definition.env) : env,
          cwd: resolve(workspace, cwd?.[""] ?? ""),
        };
        const filled = withDataFolder(values, () => dataFolder({ home, workspace, name }));
        return {
          name,
          command: command?.[""] ?? definition.command,
          ...filled,
          env: { ...Object.fromEntries(variables), ...filled.env },
          isGuest: !(definition.cwd ?? file?.servers.includes(definition)),
          tools,
          confine,
          definition,
        };
      },
      (definition) =>
        sources.keys.variablesOf(envFilePath(definition, sources.policy), definition.name),
    );
    // The values contain the allowed hosts, so they are computed again when the grants change.
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
        (definition, filled, plain: ReadonlyMap<string, string>) =>
          this.#httpValues(definition, { ...filled, plain }),
        (definition) => this.#plainValues(definition),
      )
    );
    this.fillTexts = sources.keys.maker(
      (definition: ServerDefinition): DefinitionTexts =>
        definitionKindOf(definition).texts?.(definition) ?? {},
      (_, filled) => filled,
      () => NO_VALUES,
    );
    this.http = (definition) => http(sources.policy.now.config.grants)(definition);
  }

  #httpValues(
    definition: RemoteDefinition,
    filled: Pick<RemoteDefinition, "headers"> & {
      readonly oauth: { client_secret: string };
      readonly url: Readonly<Record<string, string>>;
      readonly plain: ReadonlyMap<string, string>;
    },
  ): HttpValues {
    const { name, isSse, tools, headers: written } = definition;
    const values = { server: name, plain: filled.plain, keys: Object.values(filled.url) };
    const { url, requestUrl } = this.#isFromRegistry
      ? { url: definition.url, requestUrl: definition.url }
      : filledAddress(definition.url, values);
    const headers = this.#isFromRegistry ? withoutEmpty(filled.headers, written) : filled.headers;
    const client_secret = filled.oauth.client_secret || undefined;
    if (client_secret !== undefined) this.#sources.redactor.register(client_secret);
    const oauth = definition.oauth && { ...definition.oauth, client_secret };
    // Keys that the file contains literally must be redacted, too.
    const literal = Object.entries(headers).filter(([header]) => SECRET_HEADER.test(header));
    for (const [, value] of literal) this.#sources.redactor.register(value.replace(/^\w+\s+/, ""));
    // If variables are replaced in the address, its query may contain keys.
    for (const value of new URL(requestUrl).searchParams.values()) {
      if (requestUrl !== url && !definition.url.includes(value)) {
        this.#sources.redactor.register(value);
      }
    }
    const named = this.#namedHosts(name, url);
    const certificates = certificatesOf({ ...definition, url }, this.#sources.policy);
    const address = { name, url, requestUrl, isSse, named, certificates };
    return { ...address, headers, written, oauth, tools, definition };
  }

  /**
   * Returns the values of the variables in the host of an address: the same object until one
   * changes.
   */
  #plainValues(definition: RemoteDefinition): ReadonlyMap<string, string> {
    const { plain } = variablesOfAddress(definition.url);
    if (plain.length === 0 || this.#isFromRegistry) return NO_VALUES;
    const now = plainValuesOf(definition.url, (name) => this.#sources.keys.plain(name));
    const before = this.#plain.get(definition);
    if (before !== undefined && JSON.stringify([...before]) === JSON.stringify([...now])) {
      return before;
    }
    this.#plain.set(definition, now);
    return now;
  }

  /** Returns the hosts that the user named. Only these may be on this machine or in its network. */
  #namedHosts(name: string, url: string): ReadonlySet<string> {
    const { grants } = this.#sources.policy.now.config;
    if (this.#registryOf === undefined) return new Set([new URL(url).host]);
    // A server of a registry may use the host of its registry, and hosts in the user's grants.
    const source = this.#registryOf(name) ?? "";
    const host = URL.parse(source.replace(/^mcp\+/, ""))?.host;
    return new Set([...host === undefined ? [] : [host], ...grants[name]?.net ?? []]);
  }
}

/** Removes values of optional variables of a registry's entry (`${NAME:-}`) that are not set. */
function withoutEmpty(
  filled: Readonly<Record<string, string>>,
  written: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const isUnset = (name: string, value: string) =>
    value === "" && /^\$\{\w+:-\}$/.test(written[name] ?? "");
  return Object.fromEntries(
    Object.entries(filled).filter(([name, value]) => !isUnset(name, value)),
  );
}

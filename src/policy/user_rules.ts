/**
 * Decides which servers the allow rules of the user's own file cover. These rules apply to all
 * workspaces, so they must not allow a server that a workspace defines under a familiar name.
 *
 * @module
 */

import type { LoadedConfig } from "../config/config.ts";
import type { Config } from "../config/current_config.ts";
import { askedRegistries } from "../config/registries.ts";
import type { RuleLine, Rules } from "../config/rules.ts";
import { quoted } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { CLOUD_URL } from "../servers/cloud/kind.ts";

/** The facts about the servers of a workspace. */
export interface ServerFacts {
  readonly config: Config;
  readonly loaded: LoadedConfig;
  /** The names of built-in servers and of saved capabilities. */
  readonly ownNames: readonly string[];
  /** The registries of approved servers and capabilities, by their names. */
  readonly registries: ReadonlyMap<string, string>;
}

/** The reach of the allow rules in the user's own file. */
export class UserRules {
  readonly #path: string;
  /** The reasons why the rules do not cover servers and capabilities, by their names. */
  readonly #reasons = new Map<string, string>();
  /** The registries that the user's configuration names, and the default one. */
  readonly #ownRegistries: readonly string[];
  /** The start of the reason for servers of other registries; undefined if the rules cover them. */
  readonly #registryReason: string | undefined;
  /** The servers that no workspace defines. */
  readonly #ownServers: ReadonlySet<string>;
  /**
   * Why the rules do not cover servers of the workspace file's hub; undefined for the default hub.
   */
  readonly #hubReason: string | undefined;

  /** Takes the facts about the servers. */
  constructor({ config, loaded, ownNames, registries }: ServerFacts) {
    const { userConfig, file, environment } = loaded;
    const path = quoted(file?.path ?? "", 300);
    const own = askedRegistries(environment, undefined, userConfig.registries);
    this.#ownRegistries = own.map(({ url }) => url);
    this.#path = userConfig.path;
    this.#ownServers = new Set([
      ...ownNames.map((name) => name.split(":", 1)[0] ?? ""),
      ...userConfig.servers.map(({ name }) => name),
      ...registries.keys(),
    ]);
    // The owner wrote the rules of an identity for exactly this workspace.
    if (config.restrictions?.identity !== undefined) return;
    this.#registryReason = `only ${path} names its registry`;
    for (const [name, url] of registries) {
      const reason = this.whyRegistryUncovered(url);
      if (reason !== undefined) this.#reasons.set(name, reason);
    }
    for (const server of config.servers) {
      if (!userConfig.servers.includes(server)) {
        this.#reasons.set(server.name, `${path} defines it`);
      }
    }
    const { url = CLOUD_URL } = config.cloud ?? {};
    if (url !== CLOUD_URL) this.#hubReason = `${path} names its hub ${quoted(url, 300)}`;
  }

  /**
   * Returns why allow rules of the user's file do not cover a tool although they name its server;
   * undefined if they cover it.
   */
  whyUncovered(id: ToolId): string | undefined {
    const server = id.slice(0, id.indexOf(":"));
    const reason = this.#reasons.get(server) ?? this.#reasons.get(id);
    return reason ?? (this.#ownServers.has(server) ? undefined : this.#hubReason);
  }

  /** Returns why the rules do not cover the servers of a registry; undefined if they cover them. */
  whyRegistryUncovered(url: string): string | undefined {
    if (this.#registryReason === undefined || this.#ownRegistries.includes(url)) return undefined;
    return `${this.#registryReason} ${quoted(url, 300)}`;
  }

  /** Returns the rules that apply to a tool. */
  rulesFor(id: ToolId, rules: Rules): Rules {
    return this.whyUncovered(id) === undefined ? rules : this.withoutUserRules(rules);
  }

  /** Returns the rules without the allow rules of the user's file that name a server. */
  withoutUserRules({ deny, ask, allow }: Rules): Rules {
    const isOfUser = ({ pattern, source }: RuleLine) =>
      source === this.#path && pattern.kind !== "any";
    return { deny, ask, allow: allow.filter((line) => !isOfUser(line)) };
  }
}

/**
 * The policy of a company: read-only files of the system that forbid calls and servers, and require
 * questions. They cannot allow anything. This file is loaded only if there is a policy.
 *
 * @module
 */

import type { Verdict } from "../protocol/verdict.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { memoized } from "../core/memo.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { findKind } from "../servers/kinds.ts";
import { writtenHost } from "../core/server_address.ts";

import type { OsLayer } from "./os_layer.ts";
import type { Grants } from "./server_grants.ts";
import type { RegistryEntry } from "./registries.ts";
import type { RuleLine, Rules } from "./rules.ts";

/** The parts of a server that a policy checks. */
export interface ServerLike {
  /** The name. */
  readonly name: string;
  /** How it runs: `deno`, `stdio`, `http` or `cloud`. */
  readonly kind: string;
  /** The program. */
  readonly command?: string;
  /** The arguments of the program. */
  readonly args?: readonly string[];
  /** Whether the program runs confined. */
  readonly confine?: boolean | undefined;
  /** Whether it counts as unconfined on this machine although it is confined. */
  readonly countsAsUnconfined?: true;
  /** The URL. */
  readonly url?: string;
  /** The URL of a server in the cloud, from the registry. */
  readonly proxyTo?: string;
  /** Whether a registry lists the server. */
  readonly isOfRegistry?: boolean;
}

/** The error of something that a policy forbids. */
export interface Forbidding {
  /** The path of the policy. */
  readonly path: string;
  /** The error for the call. */
  readonly error: PmlError;
}

const HINT = "Ask the administrator of this machine, who alone can change the policy";

/** The parts of a configuration that a policy restricts. */
export interface RestrictedParts {
  /** The rules. */
  readonly rules: Rules;
  /** The servers. */
  readonly servers: readonly ServerDefinition[];
  /** The registries. */
  readonly registries: readonly RegistryEntry[];
  /** The grants of servers. */
  readonly grants: Grants;
  /** The layer of the operating system that confines modules and confined servers. */
  readonly osLayer: OsLayer;
}

/**
 * All policies of this machine together. A policy can only restrict. `Restrictions.company`
 * contains it.
 *
 * @example
 * ```ts
 * import { openGateway } from "@casys/pml";
 *
 * await using gateway = await openGateway();
 * const company = gateway.config().restrictions?.company;
 * const forbidding = company?.forbidsHost("https://example.com");
 * if (forbidding !== undefined) console.log(`${forbidding.path}: ${forbidding.error.message}`);
 * ```
 */
export class Company {
  /** The files that were read. */
  readonly files: readonly PolicyFile[];
  readonly #ask: readonly RuleLine[];
  // The same list must stay the same object: a new one would create new registry clients.
  readonly #registries = memoized((all: readonly RegistryEntry[]) => {
    const registries = all.filter(({ url }) => this.forbidsRegistry(url) === undefined);
    return registries.length === all.length ? all : registries;
  });
  readonly #grants = memoized((all: Grants) => this.#narrowGrants(all));

  /** Creates the policy from the files that were read. */
  constructor(files: readonly PolicyFile[]) {
    this.files = files;
    this.#ask = files.flatMap(({ rules: { ask } }) => ask);
  }

  /** Whether a policy forbids servers that are not confined. */
  get mustConfine(): boolean {
    return this.files.some(({ policy }) => policy.forbid?.includes("unconfined"));
  }

  /** Returns the configuration without forbidden parts. */
  applyTo<C extends RestrictedParts>(config: C): C {
    const { rules, servers, osLayer } = config;
    // guard: company-servers
    return {
      ...config,
      rules: this.#rules(rules),
      servers: servers.filter((server) => this.forbids(server) === undefined),
      registries: this.#registries(config.registries),
      grants: this.#grants(config.grants),
      osLayer: osLayer === "off" && this.mustConfine ? "auto" : osLayer,
    };
  }

  /** Returns a judge that asks if a policy requires it, although the call is allowed. */
  judge<A>(
    judge: (id: ToolId, args?: A) => Verdict,
    judgeOf: (rules: Rules) => (id: ToolId, args?: A) => Verdict,
  ): (id: ToolId, args?: A) => Verdict {
    if (this.#ask.length === 0) return judge;
    const judgeAsk = judgeOf({ deny: [], ask: this.#ask, allow: [] });
    return (id, args) => {
      const verdict = judge(id, args);
      const policyVerdict = judgeAsk(id, args);
      const isAsked = policyVerdict.source !== "defaults";
      // guard: company-ask
      return verdict.kind === "allow" && isAsked ? policyVerdict : verdict;
    };
  }

  /** Returns why a policy forbids a server; undefined if none does. */
  forbids(server: ServerLike): Forbidding | undefined {
    const { name, url = server.proxyTo } = server;
    const words = wordsOf(server);
    for (const { path, policy: { forbid } } of this.files) {
      const word = words.find((each) => forbid?.includes(each));
      if (word !== undefined) {
        return toForbidding(path, `the server ${quoted(name)}`, `${word} servers`);
      }
    }
    return url === undefined ? undefined : this.forbidsHost(url, `the server ${quoted(name)}`);
  }

  /** Returns why a policy forbids a registry; undefined if none does. */
  forbidsRegistry(url: string): Forbidding | undefined {
    const what = `the registry ${quoted(url, 300)}`;
    for (const { path, policy: { forbid, registries } } of this.files) {
      if (forbid?.includes("registry")) return toForbidding(path, what, "all registries");
      if (registries?.every((each) => addressOf(each) !== addressOf(url))) {
        return toForbidding(path, what, "every registry that it does not name");
      }
    }
    return undefined;
  }

  /** Returns why a policy forbids the host of a URL; undefined if none does. */
  forbidsHost(url: string, what = "the network"): Forbidding | undefined {
    const host = writtenHost(url);
    if (host === undefined) {
      const file = this.files.find(({ policy: { hosts } }) => hosts !== undefined);
      return file &&
        toForbidding(file.path, what, "every host that its definition does not write out");
    }
    const file = this.#fileWithoutHost(host);
    return file && toForbidding(file.path, what, `the host ${host}`);
  }

  /** Returns a policy whose list of hosts does not include a host. */
  #fileWithoutHost(host: string): PolicyFile | undefined {
    const name = hostOf(host);
    return this.files.find(({ policy: { hosts } }) =>
      hosts?.map(hostOf).every((each) =>
        each.startsWith("*.") ? !name.endsWith(each.slice(1)) : each !== name
      )
    );
  }

  #rules({ deny, ask, allow }: Rules): Rules {
    const policyDeny = this.files.flatMap(({ rules }) => rules.deny);
    return { deny: [...deny, ...policyDeny], ask: [...ask, ...this.#ask], allow };
  }

  /** Removes forbidden hosts from the grants of modules and confined programs. */
  #narrowGrants(grants: Grants): Grants {
    if (this.files.every(({ policy }) => policy.hosts === undefined)) return grants;
    const servers = Object.entries(grants).map(([server, { net = [], ...rest }]) => {
      const hosts = net.filter((host) =>
        this.#fileWithoutHost(host.replace(/:\d+$/, "")) === undefined
      );
      return [server, { ...rest, net: hosts }];
    });
    return Object.assign(Object.create(null), Object.fromEntries(servers));
  }
}

/** Returns the words by which a policy can forbid a server. */
function wordsOf(
  server: ServerLike,
): readonly string[] {
  // A cached catalog may come from a version of PML that has other kinds.
  const { pinnedAs = server.kind, definition } = findKind(server.kind) ?? {};
  const { isOfRegistry = false } = server;
  return [
    pinnedAs,
    ...(isOfRegistry ? ["registry"] : []),
    ...definition?.policyWords?.(server) ?? [],
  ];
}

function toForbidding(path: string, what: string, why: string): Forbidding {
  const message = `Cannot use ${what}: the company's policy ${quoted(path, 400)} forbids ${why}`;
  return { path, error: new PmlError("PERMISSION_DENIED", message, { hint: HINT }) };
}

/** Returns a host in lower case and without a dot at its end, to compare it. */
function hostOf(text: string): string {
  return text.toLowerCase().replace(/\.$/, "");
}

/** Returns the normalized address of a registry, to compare it. */
function addressOf(url: string): string {
  const [, format = "", rest = ""] = /^(mcp\+)?(.*)$/s.exec(url) ?? [];
  return format + new URL(rest).href.replace(/\/$/, "");
}

/** A policy that was read. */
export interface PolicyFile {
  /** The path. */
  readonly path: string;
  /** The hash of its bytes; undefined if it cannot be used. */
  readonly hash: string | undefined;
  /** Its deny and ask rules. */
  readonly rules: Rules;
  /** Its content. */
  readonly policy: SaidPolicy;
}

/** The content of a policy file, after its schema was checked. */
export interface SaidPolicy {
  /** The rules that nothing overrides. */
  readonly permissions?: { readonly [K in "deny" | "ask"]?: readonly string[] };
  /** The kinds of servers that it forbids. */
  readonly forbid?: readonly string[];
  /** The only registries that may be asked; missing for all. */
  readonly registries?: readonly string[];
  /** The only hosts that may be reached; missing for all. */
  readonly hosts?: readonly string[];
}

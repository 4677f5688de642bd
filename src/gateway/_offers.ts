/**
 * Lists the resources, prompts and skills of all servers under names that contain the server, and
 * finds them.
 *
 * @module
 */

import type { ContentBlock, Outcome } from "../protocol/call.ts";
import { isPage, toolPage, withPageAddresses } from "../protocol/apps.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, objectOf, quoted } from "../core/json.ts";
import { SKILLS_EXTENSION } from "../protocol/extension_methods.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import { hasAddress, isSkillAddress, renamedSkill, skillOf } from "../protocol/skills.ts";
import { placedAddress, splitPlaced } from "../protocol/placed_address.ts";
import { dropOldest } from "../core/memo.ts";
import type { PartRuleName } from "../core/pattern.ts";
import { parseToolId, splitToolId, type ToolId, toolId, wireName } from "../core/tool_id.ts";
import { OWN_RESOURCES, OWN_TEMPLATES } from "./_own_resources.ts";
import { isCovered } from "./_uri_templates.ts";
import type { RenderedLists } from "./rendered_lists.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { GatewaySettings } from "./options.ts";

/** The parts of the gateway's host that names depend on. */
interface OffersHost {
  readonly servers: Servers;
  settings(): Pick<GatewaySettings, "prefix">;
}

/** A resource or a prompt of a server, with its name there. */
export interface ServerItem {
  readonly server: string;
  readonly name: string;
}

/** Addresses without a directory, which no skill has. */
const NO_SKILL = ["skill://", "skill://SKILL.md"];
const PLACED = /^pml:\/\/([a-z0-9._-]+)\/(.+)$/s;
/** The maximum length of a URI that is remembered, in characters. */
const URI_MAX = 2_000;
/** How many links of results are remembered. */
const LINKS_MAX = 10_000;
const RULE_NAME_OF: Readonly<Record<Exclude<ListName, "tools">, PartRuleName>> = {
  resources: "@resources",
  resourceTemplates: "@resources",
  prompts: "@prompts",
  skills: "@skills",
};

const LISTS = ["resources", "resourceTemplates", "skills"] as const;

const OWN: Readonly<Record<Exclude<ListName, "tools" | "skills">, readonly JsonObject[]>> = {
  resources: OWN_RESOURCES,
  resourceTemplates: OWN_TEMPLATES,
  prompts: [],
};

/** Names the resources, prompts and skills of servers, and finds them by these names. */
export class Offers {
  readonly #host: OffersHost;
  readonly #servers: Servers;
  readonly #rendered: RenderedLists;
  readonly #links = new Map<string, Set<string>>();
  readonly #uris = new WeakMap<readonly ListItem[], ReadonlySet<unknown>>();

  /** Takes the host of the gateway. Requests no list yet. */
  constructor(host: OffersHost, rendered: RenderedLists) {
    this.#host = host;
    this.#servers = host.servers;
    this.#rendered = rendered;
  }

  /** Whether names begin with their server's. */
  get #hasPrefix(): boolean {
    return this.#host.settings().prefix;
  }

  /** Returns a list of all servers whose rules allow it, in a fixed order. */
  async list(
    list: Exclude<ListName, "tools">,
    judge: (id: ToolId) => Verdict,
  ): Promise<readonly JsonObject[]> {
    const servers = this.#servers;
    // Clients with a slow server would wait for all of their tools: some count a connection as ready
    // only when these lists are answered.
    await servers.lists.prepare(list, { atOnce: true });
    const own = this.#hasPrefix ? await ownItems(list) : [];
    const isDenied = (server: string, ruleName: PartRuleName) =>
      judge(toolId(server, ruleName)).kind === "deny";
    const items = servers.lists.itemsOf(list)
      .filter(({ server }) => !isDenied(server, RULE_NAME_OF[list]))
      .flatMap(({ server, items }) =>
        this.#rendered.items(
          // The files of skills are resources, too.
          list === "resources" && isDenied(server, "@skills")
            ? this.#noSkills(server, items)
            : items,
          `${list} ${server} ${this.#hasPrefix}`,
          (item) => this.#withName(item, { server, list }),
        )
      );
    // Skills of servers come first: that of PML is for a model that knows none of them.
    return list === "skills" ? [...items, ...own] : [...own, ...items];
  }

  /** Finds the server of a URI or a template. Throws if no server has it, or several do. */
  async resource(uri: string): Promise<ServerItem> {
    const servers = this.#servers;
    const [, server, name] = PLACED.exec(uri) ?? [];
    if (server !== undefined && name !== undefined && servers.has(server)) return { server, name };
    const page = this.#pageAt(uri);
    if (page !== undefined && await this.isOffered(page)) return page;
    const skill = await this.#skillPlace(uri);
    if (skill !== undefined) return skill;
    if (!uri.startsWith("pml:")) {
      const needed = ["resources", "skills"] as const;
      await Promise.all(needed.map((list) => servers.lists.prepare(list)));
      const owners = this.#ownersOf(uri);
      const [only] = owners;
      if (only !== undefined && owners.length === 1) return { server: only, name: uri };
      if (owners.length > 1) throw this.#ambiguous(uri, owners);
      const covering = await this.#coveringOf(uri);
      const [sole] = covering;
      if (sole !== undefined && covering.length === 1) return { server: sole, name: uri };
      if (covering.length > 1) throw this.#ambiguous(uri, covering);
      if (page !== undefined) return page;
      const sources = [...servers.lists.entries.values()].map(({ source }) => source);
      const first = sources.find(({ origin }) => !origin.isShipped);
      if (first !== undefined && !this.#hasPrefix) return { server: first.name, name: uri };
    }
    const missing = servers.lists.missing("resources");
    throw new PmlError("BAD_REQUEST", `Cannot find the resource ${quoted(uri, 200)}${missing}`, {
      hint: "`resources/list` has all resources, as pml://SERVER/URI, and pages as ui://SERVER/…",
    });
  }

  /** Finds the server of a prompt. Throws if no server has it. */
  async prompt(name: string): Promise<ServerItem> {
    const servers = this.#servers;
    const find = () => this.#promptOf(name);
    const prompt = find() ?? await servers.lists.prepare("prompts").then(find);
    if (prompt !== undefined) return prompt;
    const id = parseToolId(name);
    const place = id && splitToolId(id);
    if (place !== undefined && servers.has(place.server)) {
      return { server: place.server, name: place.tool };
    }
    const missing = servers.lists.missing("prompts");
    throw new PmlError("BAD_REQUEST", `Cannot find the prompt ${quoted(name, 200)}${missing}`, {
      hint: "`prompts/list` has all prompts, as SERVER__PROMPT",
    });
  }

  /** Remembers the resources that a result links or contains: their own URIs may be read. */
  link(server: string, content: readonly ContentBlock[]): void {
    for (const { type, uri, resource } of content) {
      if (type !== "resource_link" && type !== "resource") continue;
      this.linkTo(server, type === "resource" ? objectOf(resource).uri : uri);
    }
  }

  /** Remembers an address that a result contains. */
  linkTo(server: string, uri: unknown): void {
    if (typeof uri !== "string" || uri.length > URI_MAX) return;
    const servers = this.#links.get(uri) ?? new Set();
    // The map is in the order of the last link.
    this.#links.delete(uri);
    this.#links.set(uri, servers.add(server));
    dropOldest(this.#links, LINKS_MAX);
  }

  /**
   * Returns whether a server listed or linked a resource or a template, or a template that it listed
   * covers it. Lists of the server that are unknown are loaded.
   */
  async isOffered({ server, name }: ServerItem): Promise<boolean> {
    if (this.#links.get(name)?.has(server)) return true;
    const servers = this.#servers;
    const itemsOf = async (list: ListName) => {
      // A read needs the server anyway, so a slow start costs nothing more.
      await servers.lists.prepare(list, { only: server, isWhole: true });
      return servers.lists.itemsOf(list).find((one) => one.server === server)?.items ?? [];
    };
    const [resources, templates, skills] = await Promise.all(LISTS.map(itemsOf));
    if (resources && this.#urisOf(resources).has(name)) return true;
    if (skills && isInSkill(name, skills)) return true;
    // A server of skills has a template for all of them, and a skill that it does not list is not
    // pinned.
    // guard: skill-unlisted
    if (isSkillAddress(name) && this.#hasSkills(server, skills)) return false;
    if (templates && isCovered(name, templates)) return true;
    return isPage(name) && (await itemsOf("tools")).some((one) => toolPage(one) === name);
  }

  /** Returns the URI by which a client reads a resource of a server. */
  uriOf(item: ServerItem): string {
    const { server, name } = item;
    if (!this.#hasPrefix) return name;
    if (isSkillAddress(name)) return placedAddress("skill://", item);
    return isPage(name) ? placedAddress("ui://", item) : `pml://${server}/${name}`;
  }

  /** Returns an outcome with the addresses of pages by which a client reads them. */
  withPages<O extends Extract<Outcome, { readonly kind: "result" }>>(
    server: string,
    outcome: O,
  ): O {
    if (!this.#hasPrefix) return outcome;
    const result = withPageAddresses(outcome.result, server);
    return result === outcome.result ? outcome : { ...outcome, result };
  }

  /** Returns the page of a server that an address of PML's lists leads to. */
  #pageAt(uri: string): ServerItem | undefined {
    const servers = this.#servers;
    const page = this.#hasPrefix && isPage(uri) ? splitPlaced("ui://", uri) : undefined;
    return page !== undefined && servers.has(page.server) ? page : undefined;
  }

  /** Returns the name that rules have for reading a resource: the files of skills have their own. */
  ruleNameOf({ server, name }: ServerItem): "@skills" | "@resources" {
    // A server cannot avoid the rules for skills by not listing one.
    // guard: skill-rules
    if (isSkillAddress(name)) return "@skills";
    return isInSkill(name, this.#skillsOf(server)) ? "@skills" : "@resources";
  }

  /**
   * Returns the server that an address names as its first segment. A server may have skills whose
   * own addresses begin with its name.
   */
  async #skillPlace(uri: string): Promise<ServerItem | undefined> {
    const servers = this.#servers;
    const place = splitPlaced("skill://", uri);
    if (place === undefined) return undefined;
    const source = servers.lists.entries.get(place.server)?.source;
    // Servers that ship with PML have no skills, and no skill is a file without a directory.
    if (source === undefined || source.origin.isShipped || NO_SKILL.includes(place.name)) {
      return undefined;
    }
    const { server } = place;
    await servers.lists.prepare("skills", { only: server, isWhole: true });
    const skills = this.#skillsOf(server);
    const isOwn = !isInSkill(place.name, skills) && isInSkill(uri, skills);
    return isOwn ? { server, name: uri } : place;
  }

  #skillsOf(server: string): readonly ListItem[] {
    return this.#servers.lists.itemsOf("skills").find((one) => one.server === server)?.items ?? [];
  }

  #hasSkills(server: string, skills: readonly ListItem[] = []): boolean {
    const extensions = this.#servers.extensions().get(server) ?? [];
    return skills.length > 0 || extensions.includes(SKILLS_EXTENSION);
  }

  #noSkills(server: string, items: readonly ListItem[]): readonly ListItem[] {
    return items.filter(({ uri }) => this.ruleNameOf({ server, name: String(uri) }) !== "@skills");
  }

  #withName(
    item: ListItem,
    { server, list }: { readonly server: string; readonly list: Exclude<ListName, "tools"> },
  ): JsonObject {
    const name = (key: string) => String(item[key]);
    switch (list) {
      case "resources":
        return { ...item, uri: this.uriOf({ server, name: name("uri") }) };
      case "resourceTemplates":
        return { ...item, uriTemplate: this.uriOf({ server, name: name("uriTemplate") }) };
      case "skills":
        return renamedSkill(item, (name) => this.uriOf({ server, name }));
      case "prompts":
        return { ...item, name: this.#promptName({ server, name: name("name") }) };
    }
  }

  #promptName({ server, name }: ServerItem): string {
    return this.#hasPrefix ? wireName(toolId(server, name)) : name;
  }

  #promptOf(wire: string): ServerItem | undefined {
    for (const { server, items } of this.#servers.lists.itemsOf("prompts")) {
      const prompt = items.find(({ name }) =>
        this.#promptName({ server, name: String(name) }) === wire
      );
      if (prompt !== undefined) return { server, name: String(prompt.name) };
    }
    return undefined;
  }

  /** Returns the servers that listed an address, or linked it in a result or a tool. */
  #ownersOf(uri: string): readonly string[] {
    const servers = this.#servers;
    const listed = servers.lists.itemsOf("resources")
      .filter(({ items }) => this.#urisOf(items).has(uri)).map(({ server }) => server);
    const tools = servers.lists.itemsOf("tools")
      .filter(({ items }) => items.some((item) => toolPage(item) === uri))
      .map(({ server }) => server);
    const ofSkills = servers.lists.itemsOf("skills")
      .filter(({ items }) => isInSkill(uri, items)).map(({ server }) => server);
    // A server that linked it may be removed.
    const linked = [...this.#links.get(uri) ?? []].filter((server) => servers.has(server));
    return [...new Set([...listed, ...tools, ...ofSkills, ...linked])];
  }

  /** Returns the servers of which a template covers an address that no server listed or linked. */
  async #coveringOf(uri: string): Promise<readonly string[]> {
    const servers = this.#servers;
    // A template for all skills would also cover those of a server that was removed.
    // guard: skill-templates
    if (isSkillAddress(uri) && this.#hasPrefix) return [];
    await servers.lists.prepare("resourceTemplates");
    return servers.lists.itemsOf("resourceTemplates")
      .filter(({ items }) => isCovered(uri, items)).map(({ server }) => server);
  }

  #urisOf(items: readonly ListItem[]): ReadonlySet<unknown> {
    const uris = this.#uris.get(items) ?? new Set(items.map(({ uri }) => uri));
    this.#uris.set(items, uris);
    return uris;
  }

  #ambiguous(uri: string, owners: readonly string[]): PmlError {
    const names = owners.map((server) => quoted(this.uriOf({ server, name: uri }), 300));
    const message = `Cannot tell whose resource ${quoted(uri, 200)} is: several servers have it`;
    return new PmlError("BAD_REQUEST", message, { hint: `Read ${names.join(" or ")}` });
  }
}

/** Returns the items of PML itself. */
async function ownItems(list: Exclude<ListName, "tools">): Promise<readonly JsonObject[]> {
  return list === "skills" ? [(await import("./_own_skill.ts")).OWN_SKILL] : OWN[list];
}

/** Returns whether one of the skills contains an address. */
function isInSkill(uri: string, skills: readonly ListItem[]): boolean {
  const skill = skillOf(skills, uri);
  return skill !== undefined && hasAddress(skill, uri);
}

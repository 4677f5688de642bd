/**
 * Lists the resources, prompts and skills of all servers, under names that contain the name of the
 * server, and finds the server of such a name.
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
import { hasAddress, isSkillAddress, renameSkill, skillOf } from "../protocol/skills.ts";
import { addressInLists, splitListAddress } from "../protocol/placed_address.ts";
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

/** A resource or a prompt of a server, with the server's own name or URI. */
export interface ServerItem {
  readonly server: string;
  readonly name: string;
}

/** Addresses without a directory: no skill can have them. */
const ADDRESSES_WITHOUT_SKILL = ["skill://", "skill://SKILL.md"];
const PML_ADDRESS = /^pml:\/\/([a-z0-9._-]+)\/(.+)$/s;
/** The maximum length of a recorded link, in characters. */
const URI_MAX = 2_000;
/** The maximum number of recorded links. */
const LINKS_MAX = 10_000;
const RULE_NAME_OF: Readonly<Record<Exclude<ListName, "tools">, PartRuleName>> = {
  resources: "@resources",
  resourceTemplates: "@resources",
  prompts: "@prompts",
  skills: "@skills",
};

const RESOURCE_LISTS = ["resources", "resourceTemplates", "skills"] as const;

const OWN_ITEMS: Readonly<Record<Exclude<ListName, "tools" | "skills">, readonly JsonObject[]>> = {
  resources: OWN_RESOURCES,
  resourceTemplates: OWN_TEMPLATES,
  prompts: [],
};

/** Creates the names of the resources, prompts and skills of servers, and finds items by them. */
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

  /** Whether names begin with the name of their server. */
  get #hasPrefix(): boolean {
    return this.#host.settings().prefix;
  }

  /** Returns a list of all servers whose rules allow it, in a fixed order. */
  async list(
    list: Exclude<ListName, "tools">,
    judge: (id: ToolId) => Verdict,
  ): Promise<readonly JsonObject[]> {
    const servers = this.#servers;
    // Do not wait for slow servers: some clients treat the connection as ready only after these
    // lists.
    await servers.lists.prepare(list, { onlyCached: true });
    const own = this.#hasPrefix ? await ownItems(list) : [];
    const isDenied = (server: string, ruleName: PartRuleName) =>
      judge(toolId(server, ruleName)).kind === "deny";
    const items = servers.lists.itemsOf(list)
      .filter(({ server }) => !isDenied(server, RULE_NAME_OF[list]))
      .flatMap(({ server, items }) =>
        this.#rendered.items(
          // The files of skills are resources, too.
          list === "resources" && isDenied(server, "@skills")
            ? this.#withoutSkills(server, items)
            : items,
          `${list} ${server} ${this.#hasPrefix}`,
          (item) => this.#withName(item, { server, list }),
        )
      );
    // PML's own skill comes last, because a model needs it only if no skill of a server fits.
    return list === "skills" ? [...items, ...own] : [...own, ...items];
  }

  /** Finds the server of a URI or a template. Throws if no server has it, or if several have it. */
  async findResource(uri: string): Promise<ServerItem> {
    const servers = this.#servers;
    const [, server, name] = PML_ADDRESS.exec(uri) ?? [];
    if (server !== undefined && name !== undefined && servers.has(server)) return { server, name };
    const page = this.#findPage(uri);
    if (page !== undefined && await this.isOffered(page)) return page;
    const skill = await this.#findSkill(uri);
    if (skill !== undefined) return skill;
    if (!uri.startsWith("pml:")) {
      const searchedLists = ["resources", "skills"] as const;
      await Promise.all(searchedLists.map((list) => servers.lists.prepare(list)));
      const owners = this.#serversWith(uri);
      const [owner] = owners;
      if (owner !== undefined && owners.length === 1) return { server: owner, name: uri };
      if (owners.length > 1) throw this.#ambiguousError(uri, owners);
      const covering = await this.#serversCovering(uri);
      const [server] = covering;
      if (server !== undefined && covering.length === 1) return { server, name: uri };
      if (covering.length > 1) throw this.#ambiguousError(uri, covering);
      if (page !== undefined) return page;
      // Without a prefix PML represents one server. That server decides about unknown addresses.
      const sources = [...servers.lists.entries.values()].map(({ source }) => source);
      const firstServer = sources.find(({ origin }) => !origin.isShipped);
      if (firstServer !== undefined && !this.#hasPrefix) {
        return { server: firstServer.name, name: uri };
      }
    }
    const missing = servers.lists.failureText("resources");
    throw new PmlError("BAD_REQUEST", `Cannot find the resource ${quoted(uri, 200)}${missing}`, {
      hint: "`resources/list` has all resources, as pml://SERVER/URI, and pages as ui://SERVER/…",
    });
  }

  /** Finds the server of a prompt. Throws if no server has it. */
  async findPrompt(name: string): Promise<ServerItem> {
    const servers = this.#servers;
    const find = () => this.#findListedPrompt(name);
    const prompt = find() ?? await servers.lists.prepare("prompts").then(find);
    if (prompt !== undefined) return prompt;
    const id = parseToolId(name);
    const place = id && splitToolId(id);
    if (place !== undefined && servers.has(place.server)) {
      return { server: place.server, name: place.tool };
    }
    const missing = servers.lists.failureText("prompts");
    throw new PmlError("BAD_REQUEST", `Cannot find the prompt ${quoted(name, 200)}${missing}`, {
      hint: "`prompts/list` has all prompts, as SERVER__PROMPT",
    });
  }

  /** Records the resources that a result links or contains, so that clients may read their URIs. */
  recordLinks(server: string, content: readonly ContentBlock[]): void {
    for (const { type, uri, resource } of content) {
      if (type !== "resource_link" && type !== "resource") continue;
      this.recordLink(server, type === "resource" ? objectOf(resource).uri : uri);
    }
  }

  /** Records an address that a result contains. */
  recordLink(server: string, uri: unknown): void {
    if (typeof uri !== "string" || uri.length > URI_MAX) return;
    const servers = this.#links.get(uri) ?? new Set();
    // Added at the end, because the map drops its first entries: the oldest links.
    this.#links.delete(uri);
    this.#links.set(uri, servers.add(server));
    dropOldest(this.#links, LINKS_MAX);
  }

  /**
   * Returns whether a server listed or linked a resource or a template, or listed a template that
   * covers the resource. Loads those lists of the server that are unknown.
   */
  async isOffered({ server, name }: ServerItem): Promise<boolean> {
    if (this.#links.get(name)?.has(server)) return true;
    const servers = this.#servers;
    const itemsOf = async (list: ListName) => {
      // A read needs the server anyway, so a slow start costs nothing more.
      await servers.lists.prepare(list, { only: server, waitsForAll: true });
      return servers.lists.itemsOf(list).find((one) => one.server === server)?.items ?? [];
    };
    const [resources, templates, skills] = await Promise.all(RESOURCE_LISTS.map(itemsOf));
    if (resources && this.#urisOf(resources).has(name)) return true;
    if (skills && isInSkill(name, skills)) return true;
    // The template of a server with skills covers all skills. But PML has not pinned a skill that
    // the server does not list, so such a skill counts as not offered.
    // guard: skill-unlisted
    if (isSkillAddress(name) && this.#providesSkills(server, skills)) return false;
    if (templates && isCovered(name, templates)) return true;
    return isPage(name) && (await itemsOf("tools")).some((one) => toolPage(one) === name);
  }

  /** Returns the URI with which a client reads a server's resource. */
  uriOf(item: ServerItem): string {
    const { server, name } = item;
    if (!this.#hasPrefix) return name;
    if (isSkillAddress(name)) return addressInLists("skill://", item);
    return isPage(name) ? addressInLists("ui://", item) : `pml://${server}/${name}`;
  }

  /** Returns an outcome in which pages (`ui://…`) have the addresses of PML's lists. */
  withPages<O extends Extract<Outcome, { readonly kind: "result" }>>(
    server: string,
    outcome: O,
  ): O {
    if (!this.#hasPrefix) return outcome;
    const result = withPageAddresses(outcome.result, server);
    return result === outcome.result ? outcome : { ...outcome, result };
  }

  /**
   * Returns the server and the page for an address of PML's lists; undefined for other addresses.
   */
  #findPage(uri: string): ServerItem | undefined {
    const servers = this.#servers;
    const page = this.#hasPrefix && isPage(uri) ? splitListAddress("ui://", uri) : undefined;
    return page !== undefined && servers.has(page.server) ? page : undefined;
  }

  /** Returns the name in rules for reading a resource: `@skills` for files of skills. */
  ruleNameOf({ server, name }: ServerItem): "@skills" | "@resources" {
    // Also for a skill that the server does not list. Otherwise it could avoid the rules for skills.
    // guard: skill-rules
    if (isSkillAddress(name)) return "@skills";
    return isInSkill(name, this.#skillsOf(server)) ? "@skills" : "@resources";
  }

  /**
   * Returns the server and its own address of a skill, for an address in PML's lists: the first
   * segment is the name of the server. Returns the whole address if it is an own address of the
   * server, which may also begin with the name of the server.
   */
  async #findSkill(uri: string): Promise<ServerItem | undefined> {
    const servers = this.#servers;
    const place = splitListAddress("skill://", uri);
    if (place === undefined) return undefined;
    const source = servers.lists.entries.get(place.server)?.source;
    // Servers that ship with PML have no skills.
    if (
      source === undefined || source.origin.isShipped ||
      ADDRESSES_WITHOUT_SKILL.includes(place.name)
    ) {
      return undefined;
    }
    const { server } = place;
    await servers.lists.prepare("skills", { only: server, waitsForAll: true });
    const skills = this.#skillsOf(server);
    const isServersOwn = !isInSkill(place.name, skills) && isInSkill(uri, skills);
    return isServersOwn ? { server, name: uri } : place;
  }

  #skillsOf(server: string): readonly ListItem[] {
    return this.#servers.lists.itemsOf("skills").find((one) => one.server === server)?.items ?? [];
  }

  #providesSkills(server: string, skills: readonly ListItem[] = []): boolean {
    const extensions = this.#servers.extensions().get(server) ?? [];
    return skills.length > 0 || extensions.includes(SKILLS_EXTENSION);
  }

  #withoutSkills(server: string, items: readonly ListItem[]): readonly ListItem[] {
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
        return renameSkill(item, (name) => this.uriOf({ server, name }));
      case "prompts":
        return { ...item, name: this.#listedPromptName({ server, name: name("name") }) };
    }
  }

  #listedPromptName({ server, name }: ServerItem): string {
    return this.#hasPrefix ? wireName(toolId(server, name)) : name;
  }

  #findListedPrompt(listedName: string): ServerItem | undefined {
    for (const { server, items } of this.#servers.lists.itemsOf("prompts")) {
      const prompt = items.find(({ name }) =>
        this.#listedPromptName({ server, name: String(name) }) === listedName
      );
      if (prompt !== undefined) return { server, name: String(prompt.name) };
    }
    return undefined;
  }

  /** Returns the servers that listed an address, or linked it in a result or a tool. */
  #serversWith(uri: string): readonly string[] {
    const servers = this.#servers;
    const listed = servers.lists.itemsOf("resources")
      .filter(({ items }) => this.#urisOf(items).has(uri)).map(({ server }) => server);
    const tools = servers.lists.itemsOf("tools")
      .filter(({ items }) => items.some((item) => toolPage(item) === uri))
      .map(({ server }) => server);
    const ofSkills = servers.lists.itemsOf("skills")
      .filter(({ items }) => isInSkill(uri, items)).map(({ server }) => server);
    // A server that linked the address may no longer be configured.
    const linked = [...this.#links.get(uri) ?? []].filter((server) => servers.has(server));
    return [...new Set([...listed, ...tools, ...ofSkills, ...linked])];
  }

  /** Returns the servers whose templates cover an address that no server listed or linked. */
  async #serversCovering(uri: string): Promise<readonly string[]> {
    const servers = this.#servers;
    // A template for all skills would also cover the skills of a removed server.
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

  #ambiguousError(uri: string, owners: readonly string[]): PmlError {
    const names = owners.map((server) => quoted(this.uriOf({ server, name: uri }), 300));
    const message = `Cannot tell whose resource ${quoted(uri, 200)} is: several servers have it`;
    return new PmlError("BAD_REQUEST", message, { hint: `Read ${names.join(" or ")}` });
  }
}

/** Returns PML's own items of a list. */
async function ownItems(list: Exclude<ListName, "tools">): Promise<readonly JsonObject[]> {
  return list === "skills" ? [(await import("./_own_skill.ts")).OWN_SKILL] : OWN_ITEMS[list];
}

/** Returns whether one of the skills contains an address. */
function isInSkill(uri: string, skills: readonly ListItem[]): boolean {
  const skill = skillOf(skills, uri);
  return skill !== undefined && hasAddress(skill, uri);
}

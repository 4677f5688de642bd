/**
 * Saves what ran as a capability: checks all that can be wrong before it runs, shows all of it to
 * the person afterwards, and saves it after a yes.
 *
 * @module
 */

import type { Meanwhile } from "../core/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, type JsonObject, quoted } from "../core/json.ts";
import { parseToolId, splitToolId, type ToolId } from "../core/tool_id.ts";
import type { Capabilities } from "./capabilities.ts";
import {
  type Capability,
  capabilityHash,
  capabilityId,
  fileForm,
  parseCapability,
  TEXT_MAX,
} from "./capability.ts";
import { parametrized } from "./capability_parameters.ts";
import { namedTools } from "./capability_tools.ts";
import { shapeSchema } from "./result_shape.ts";

/** What is to be saved: checked, and not run yet. */
export interface Prepared {
  readonly id: ToolId;
  readonly capability: Omit<Capability, "toolsUsed">;
  /** What the person has to know of the parameters. */
  readonly notes: readonly string[];
}

/** What a person is shown before something is saved. */
export interface Review {
  readonly id: ToolId;
  readonly capability: Capability;
  readonly hash: string;
  /** Everything that a yes covers, one line each. */
  readonly facts: readonly string[];
  /** Saves exactly this. */
  readonly accept: () => Promise<void>;
}

/** What came of a run that is saved. */
export interface Ran {
  /** The tools that it called. */
  readonly tools: readonly string[];
  readonly output?: Json;
}

/** How the person is asked. */
export interface Asking extends Meanwhile {
  readonly signal: AbortSignal;
  readonly actor: string;
}

/** The options of `CapabilitySaving`. */
export interface CapabilitySavingOptions {
  readonly capabilities: Capabilities;
  /** Returns who has a name already, such as a server; undefined if a namespace may have it. */
  readonly takenBy: (namespace: string) => string | undefined;
  /** Says what this name stands for now, beside what is saved; undefined if it is nothing. */
  readonly hides: (id: ToolId) => string | undefined;
  /** Returns what the rules say of a tool. */
  readonly judge: (id: ToolId) => "allow" | "ask" | "deny";
  /** Returns the name that a tool has in code and plans as an id. */
  readonly idOf: (name: string) => ToolId | undefined;
  /** Asks the person. Throws if the answer is no, or if nobody can be asked. */
  readonly ask: (review: Review, asking: Asking) => Promise<void>;
}

/** Saves capabilities. */
export class CapabilitySaving {
  readonly #options: CapabilitySavingOptions;

  /** Takes the options; reads nothing. */
  constructor(options: CapabilitySavingOptions) {
    this.#options = options;
  }

  /**
   * Checks `save_as` and makes the parameters. Throws if nothing could be saved, so that nothing
   * runs in vain.
   */
  prepare(saveAs: Json, { kind, text }: Pick<Capability, "kind" | "text">): Prepared {
    const { name, description, parameters = {} } = savingOf(saveAs);
    const id = this.mayBe(name);
    if (text.length > TEXT_MAX) {
      throw new PmlError(
        "INPUT_TOO_LARGE",
        `Cannot save "${id}": it has ${text.length} characters`,
        {
          hint: `Save at most ${TEXT_MAX} characters`,
        },
      );
    }
    const { notes, ...made } = parametrized({ kind, text }, parameters);
    return { id, capability: { kind, ...made, ...defined({ description }) }, notes };
  }

  /** Returns a name as an id. Throws if it is none, or if a server has its namespace. */
  mayBe(name: string): ToolId {
    const id = capabilityId(name);
    const { server } = splitToolId(id);
    const owner = this.#options.takenBy(server);
    if (owner === undefined) return id;
    throw new PmlError(
      "NAME_CONFLICT",
      `Cannot name a capability "${id}": ${quoted(server)} is ${owner}`,
      {
        hint: "Choose a namespace that is the name of no server, such as my",
      },
    );
  }

  /** Returns what a person is shown, and what saves it. */
  async review(
    { id, capability, notes }: Prepared,
    { tools, output }: Ran,
  ): Promise<Review> {
    const { capabilities, idOf } = this.#options;
    const { kind, text } = capability;
    const named = namedTools({ kind, text }).flatMap((name) => idOf(name) ?? []);
    const ids = [...new Set([...tools.flatMap((name) => parseToolId(name) ?? []), ...named])]
      .sort();
    const { hashes, unknown } = await capabilities.hashesOf(ids);
    const returns = output === undefined ? undefined : shapeSchema(output);
    const whole: Capability = { ...capability, toolsUsed: hashes, ...defined({ returns }) };
    const more = unknown.map((tool) => `It names ${tool}, which is not known here`);
    return this.#reviewOf(id, whole, [...notes, ...more]);
  }

  /** Parses an export. Throws if it is none, if its hash is another one, or if its name is taken. */
  parse(
    value: Readonly<Record<string, Json>>,
    name = value.name,
  ): { readonly id: ToolId; readonly capability: Capability } {
    const { name: _, hash, ...form } = value;
    const wrong = (code: "BAD_ARGUMENTS" | "INTEGRITY_MISMATCH", why: string) =>
      new PmlError(code, `Cannot import this capability: ${why}`, {
        hint: "Export it again with `pml capability export`",
      });
    if (typeof name !== "string") throw wrong("BAD_ARGUMENTS", "it has no name");
    const id = this.mayBe(name);
    let capability: Capability;
    try {
      capability = parseCapability(form);
    } catch (error) {
      throw wrong("BAD_ARGUMENTS", asPmlError(error).message);
    }
    const own = capabilityHash(capability);
    if (hash === own) return { id, capability };
    throw wrong("INTEGRITY_MISMATCH", `it is ${own}, and says that it is ${quoted(`${hash}`)}`);
  }

  /** Returns the JSON that is exported. */
  exportForm(id: ToolId, capability: Capability): JsonObject {
    return exportForm(id, { capability });
  }

  /** Returns what a person is shown of a capability that came from a file. */
  async imported(id: ToolId, capability: Capability): Promise<Review> {
    const { lines, gone } = await this.#options.capabilities.changesOf(capability, {
      isAsked: true,
    });
    return this.#reviewOf(id, capability, [
      ...gone.map((tool) => `It calls ${tool}, which is not here`),
      ...(lines.length === 0 ? [] : ["These tools are not as they were when it was saved:"]),
      ...lines.map((line) => `  ${line}`),
    ]);
  }

  /**
   * Asks the person, and saves after a yes. Returns what is told with the result of the run: a
   * refusal does not make that fail.
   */
  async save(prepared: Prepared, ran: Ran, asking: Asking): Promise<JsonObject> {
    const { id } = prepared;
    let review: Review | undefined;
    try {
      review = await this.review(prepared, ran);
      await this.#options.ask(review, asking);
      await review.accept();
      const properties = prepared.capability.parameters.properties;
      return {
        saved: id,
        hash: review.hash,
        parameters: isObject(properties) ? Object.keys(properties) : [],
        hint: `Call it as the tool ${id}`,
        ...(prepared.notes.length > 0 && { notes: prepared.notes }),
      };
    } catch (error) {
      const { code, message } = asPmlError(error);
      if (code !== "APPROVAL_REQUIRED" || review === undefined) {
        return { saved: false, error: { code, message } };
      }
      const path = await this.#options.capabilities.store.draft(id, exportForm(id, review));
      return {
        saved: false,
        error: {
          code,
          message: `Cannot save "${id}" without the person's yes`,
          hint: `It ran and was not saved. Ask the person to run \`pml capability import ` +
            `${path}\` on a terminal`,
        },
      };
    }
  }

  async #reviewOf(id: ToolId, whole: Capability, notes: readonly string[]): Promise<Review> {
    const { capabilities } = this.#options;
    const around = capabilities.cycle(id, whole);
    if (around !== undefined) {
      throw new PmlError(
        "BAD_ARGUMENTS",
        `Cannot save "${id}": it would call itself: ${around.join(" calls ")}`,
        {
          hint: "Take one of these calls out",
        },
      );
    }
    const hash = capabilityHash(whole);
    const over = capabilities.store.approved().get(id);
    const hides = this.#options.hides(id);
    const replaced = [
      ...(over === undefined ? [] : [`It replaces what is saved under this name now: ${over}`]),
      ...(hides === undefined ? [] : [`It hides ${hides}`]),
    ];
    return await Promise.resolve({
      id,
      capability: whole,
      hash,
      facts: [
        `Yes saves ${
          whole.kind === "code" ? "this code" : "this plan"
        } as the tool "${id}", for all workspaces`,
        ...replaced,
        `its hash: ${hash}`,
        ...this.#lines(whole),
        ...notes,
        ...whole.text.split(/\r\n?|\n/).map((line) => `| ${line}`),
      ],
      accept: async () => {
        await capabilities.store.save(id, whole, { over });
        await capabilities.keep(Object.keys(whole.toolsUsed));
        capabilities.look();
      },
    });
  }

  #lines({ description, parameters, toolsUsed }: Capability): readonly string[] {
    const said = { allow: "runs", ask: "asks you", deny: "is denied" };
    const tools = Object.keys(toolsUsed) as ToolId[]; // ids of tools that were found
    const called = tools.map((tool) =>
      `It calls ${tool}, which ${said[this.#options.judge(tool)]} now`
    );
    return [
      ...(description === undefined ? [] : [`Description: ${quoted(description, Infinity)}`]),
      `Parameters: ${JSON.stringify(parameters.properties ?? {})}`,
      ...(called.length === 0 ? ["It called no tool"] : called),
      "Each of its calls is judged again when it runs",
    ];
  }
}

/** Returns the JSON that is exported. */
export function exportForm(
  id: ToolId,
  { capability }: Pick<Review, "capability">,
): JsonObject {
  return { name: id, hash: capabilityHash(capability), ...fileForm(capability) };
}

interface Saving {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
}

function savingOf(value: Json): Saving {
  if (typeof value === "string") return { name: value };
  const wrong = (why: string) =>
    new PmlError("BAD_ARGUMENTS", `Cannot save this: save_as ${why}`, {
      hint:
        'Send "namespace:action", or {"name", "description"?, "parameters"?: {"city": "Paris"}}',
    });
  if (!isObject(value)) throw wrong("is neither a text nor an object");
  const { name, description, parameters, ...rest } = value;
  const [other] = Object.keys(rest);
  if (other !== undefined) throw wrong(`has an unknown key ${quoted(other)}`);
  if (typeof name !== "string") throw wrong("has no name");
  if (description !== undefined && typeof description !== "string") {
    throw wrong("has a description that is no text");
  }
  if (parameters !== undefined && !isObject(parameters)) {
    throw wrong("has parameters that are no object");
  }
  return { name, ...defined({ description, parameters: parameters as JsonObject | undefined }) };
}

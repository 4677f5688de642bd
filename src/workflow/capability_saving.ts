/**
 * Saves code and plans that ran as capabilities: checks everything before the run, shows the user
 * the whole capability after the run, and saves it if the user approves.
 *
 * @module
 */

import type { CallClient } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined, isObject, type Json, type JsonObject, objectOf, quoted } from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { Policy } from "../policy/policy.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Capabilities } from "./capabilities.ts";
import {
  type Capability,
  capabilityHash,
  capabilityId,
  exported,
  fileForm,
  TEXT_MAX,
  textLines,
} from "../servers/capability/capability.ts";
import { namedTools, parametrized } from "./capability_parameters.ts";

/** A checked capability that has not run yet. One from a file includes its tools. */
export interface Prepared {
  readonly id: ToolId;
  readonly capability: Omit<Capability, "toolsUsed"> & Partial<Capability>;
  /** Notes for the user about the parameters. */
  readonly notes: readonly string[];
}

/** The information that the user sees before a capability is saved. */
export interface Review {
  readonly id: ToolId;
  readonly hash: string;
  /** Everything that the approval covers, one per line. */
  readonly facts: readonly string[];
  /** The capability exactly as it is saved. */
  readonly capability: Capability;
  /** The hash of the capability that it replaces. */
  readonly over: string | undefined;
}

/** Where and for whom the user is asked. */
export interface SavingContext {
  /** The client that waits for the answer. */
  readonly client: CallClient;
  readonly signal: AbortSignal;
  readonly actor: string;
}

/** The names of servers and of capabilities of registries. */
export interface TakenNames {
  /** Returns the owner of a name, such as a server; undefined if a namespace may have it. */
  ownerOf(namespace: string): string | undefined;
  /** Describes the tool that a capability of this name would hide; undefined without one. */
  hiddenBy(id: ToolId): string | undefined;
}

/** Asks the user before a capability is saved. */
export interface SavingApproval {
  /** Throws if the user refuses, or if no user can be asked. */
  ask(review: Review, asking: SavingContext): Promise<void>;
}

/** The collaborators of `CapabilitySaving`. */
export interface CapabilitySavingParts {
  readonly capabilities: Capabilities;
  readonly policy: Pick<Policy, "now">;
  readonly servers: Pick<Servers, "idOf">;
  readonly names: TakenNames;
  readonly approval: SavingApproval;
}

/** Saves capabilities. */
export class CapabilitySaving {
  readonly #parts: CapabilitySavingParts;

  /** Creates an instance. Reads nothing. */
  constructor(parts: CapabilitySavingParts) {
    this.#parts = parts;
  }

  /**
   * Checks `save_as` and creates the parameters. Throws if saving would fail, so that nothing runs
   * in vain.
   */
  prepare(saveAs: Json, { kind, text }: Pick<Capability, "kind" | "text">): Prepared {
    const { name, description, parameters = {} } = savingOf(saveAs);
    const id = this.mayBe(name);
    if (text.length > TEXT_MAX) {
      throw refused("INPUT_TOO_LARGE", id, `it has more than ${TEXT_MAX} characters`);
    }
    const { notes, ...made } = parametrized({ kind, text }, parameters);
    return { id, capability: { kind, ...made, ...defined({ description }) }, notes };
  }

  /** Parses a name as an id. Throws if it is invalid or its namespace is the name of a server. */
  mayBe(name: string): ToolId {
    const id = capabilityId(name);
    const { server } = splitToolId(id);
    const owner = this.#parts.names.ownerOf(server);
    // guard: capability-name
    if (owner === undefined) return id;
    throw refused("NAME_CONFLICT", id, `${quoted(server)} is ${owner}`);
  }

  /** Parses an export. Throws if it is invalid, its hash does not match or its name is taken. */
  parse(value: Readonly<Record<string, Json>>, name = value.name): Prepared {
    const id = this.mayBe(`${name}`);
    try {
      return { id, capability: exported(value), notes: [] };
    } catch (error) {
      throw refused("INTEGRITY_MISMATCH", id, asPmlError(error).message);
    }
  }

  /** Returns the information that the user approves. `ran` contains the called tools. */
  async review({ id, capability, notes }: Prepared, ran: readonly string[] = []): Promise<Review> {
    const { capabilities, servers, names: taken } = this.#parts;
    const more = [...notes];
    let { toolsUsed } = capability;
    const names = [...ran, ...namedTools(capability)];
    const ids = [...new Set(names.flatMap((name) => servers.idOf(name) ?? []))].sort();
    if (toolsUsed !== undefined) {
      // The file itself lists these tools.
      const listedTools = new Set(Object.keys(toolsUsed));
      more.push(
        ...ids.filter((tool) => !listedTools.has(tool)).map((tool) =>
          `It names ${tool}, which its own list of tools omits`
        ),
      );
    } else {
      toolsUsed = capabilities.hashesOf(await capabilities.definitionsOf(ids));
      const unknown = ids.filter((tool) => toolsUsed?.[tool] === undefined);
      more.push(...unknown.map((tool) => `It names ${tool}, which is not known here`));
    }
    const whole: Capability = { ...capability, toolsUsed };
    const around = capabilities.cycle(id, whole);
    // guard: capability-cycle
    if (around !== undefined) {
      throw refused("BAD_ARGUMENTS", id, `it would call itself: ${around.join(" calls ")}`);
    }
    const hash = capabilityHash(whole);
    const over = capabilities.store.approved().get(id);
    const hidden = taken.hiddenBy(id);
    const { facts } = await this.describe(whole);
    return {
      id,
      hash,
      facts: [
        `Yes saves this ${whole.kind} as the tool "${id}", for all workspaces`,
        ...(over === undefined ? [] : [`It replaces the current capability of this name: ${over}`]),
        ...(hidden === undefined ? [] : [`It hides ${hidden}`]),
        ...more,
        ...facts,
      ],
      capability: whole,
      over,
    };
  }

  /** Saves a capability that the user saw and approved. */
  async accept({ id, capability, over }: Review): Promise<void> {
    await this.#parts.capabilities.save(id, capability, over);
  }

  /** Describes a capability for the user, including the changes since it was saved. */
  async describe(
    whole: Capability,
  ): Promise<{ readonly facts: readonly string[]; readonly stale: readonly string[] }> {
    const { capabilities, policy } = this.#parts;
    const { description, parameters, toolsUsed, text } = whole;
    const { lines, gone } = await capabilities.changesOf(whole, { isAsked: true });
    const stale = [...gone.map((tool) => `${tool} is gone`), ...lines];
    const verbs = { allow: "runs", ask: "asks you", deny: "is denied" };
    const tools = Object.keys(toolsUsed) as ToolId[]; // ids of tools that were found
    const facts = [
      `its hash: ${capabilityHash(whole)}`,
      ...(description === undefined ? [] : [`Description: ${quoted(description, Infinity)}`]),
      `Parameters: ${JSON.stringify(parameters.properties ?? {})}`,
      ...tools.map((tool) => `It calls ${tool}, which ${verbs[policy.now.judge(tool).kind]} now`),
      ...(tools.length === 0 ? ["It calls no tool"] : []),
      "Each of its calls is checked again when it runs",
      ...stale.map((line) => `Changed since it was saved: ${line}`),
      ...textLines(text),
    ];
    return { facts, stale };
  }

  /**
   * Asks the user, and saves the capability if the user approves. Returns the outcome for the
   * answer of the run, which does not fail if the user refuses.
   */
  async save(
    prepared: Prepared,
    ran: readonly string[],
    asking: SavingContext,
  ): Promise<JsonObject> {
    const { id, capability: { kind, parameters }, notes } = prepared;
    try {
      const review = await this.review(prepared, ran);
      // guard: capability-ask
      await this.#parts.approval.ask(review, asking);
      await this.accept(review);
      return {
        saved: id,
        hash: review.hash,
        parameters: Object.keys(objectOf(parameters.properties)),
        hint: `Call it as the tool ${id}`,
        ...(notes.length > 0 && { notes }),
      };
    } catch (error) {
      const { code, message: why } = asPmlError(error);
      const message = why.replace(/^Cannot run/, "Cannot save");
      const hint = code === "APPROVAL_REQUIRED"
        ? `It ran, but was not saved. Ask the user to save it: write it to a ` +
          `file and run \`pml capability save ${id} --${kind} FILE\``
        : undefined;
      return { saved: false, error: defined({ code, message, hint }) };
    }
  }
}

/** Returns the JSON that is exported. */
export function exportForm(id: ToolId, capability: Capability): JsonObject {
  return { name: id, hash: capabilityHash(capability), ...fileForm(capability) };
}

/** Hints by error code. */
const HINTS = {
  BAD_ARGUMENTS: "Remove one of these calls",
  INPUT_TOO_LARGE: "Save less at once",
  INTEGRITY_MISMATCH: "Export it again with `pml capability export`",
  NAME_CONFLICT: "Choose a namespace that names no server, such as my",
} as const;

function refused(code: keyof typeof HINTS, id: ToolId, why: string): PmlError {
  return new PmlError(code, `Cannot save "${id}": ${why}`, { hint: HINTS[code] });
}

interface Saving {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
}

function savingOf(value: Json): Saving {
  const { name, description, parameters, ...rest } = isObject(value) ? value : { name: value };
  const [other] = Object.keys(rest);
  const why = other !== undefined
    ? `has an unknown key ${quoted(other)}`
    : typeof name === "string" && ["undefined", "string"].includes(typeof description) &&
        (parameters === undefined || isObject(parameters))
    ? undefined
    : "is not valid";
  // The checked value is plain JSON.
  if (why === undefined) return defined({ name, description, parameters }) as unknown as Saving;
  throw new PmlError("BAD_ARGUMENTS", `Cannot save this: save_as ${why}`, {
    hint: 'Send "namespace:action", or {"name", "description"?, "parameters"?: {"city": "Paris"}}',
  });
}

/** The saved capabilities, and the service that saves new ones. */
export interface OpenCapabilities {
  readonly capabilities: Capabilities;
  readonly saving: CapabilitySaving;
}

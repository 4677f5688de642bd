/**
 * Saves code and plans that ran as capabilities. Everything is checked before the run. After the
 * run, the user sees the whole capability and approves or refuses to save it.
 *
 * @module
 */

import type { CallClient } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  objectOf,
  quoted,
  withoutUndefined,
} from "../core/json.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type { Policy } from "../policy/policy.ts";
import type { Servers } from "../servers/lists/servers.ts";
import type { Capabilities } from "./capabilities.ts";
import {
  type Capability,
  capabilityHash,
  capabilityId,
  parseExported,
  TEXT_MAX,
  textLines,
  toFileJson,
} from "../servers/capability/capability.ts";
import { findToolNames, parametrize } from "./capability_parameters.ts";

/** A checked capability that has not run yet. A capability from a file includes its tools. */
export interface PreparedCapability {
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
  readonly replacedHash: string | undefined;
}

/** The client through which the user is asked, and the actor who saves. */
export interface SavingContext {
  /** The client that waits for the answer. */
  readonly client: CallClient;
  readonly signal: AbortSignal;
  readonly actor: string;
}

/** Finds the owners of names that conflict with the name of a capability. */
export interface TakenNames {
  /** Returns the owner of a name, such as a server; undefined if the name is free. */
  ownerOf(namespace: string): string | undefined;
  /** Describes the tool that a capability of this name would hide; undefined if it hides none. */
  describeHidden(id: ToolId): string | undefined;
}

/** Asks the user before a capability is saved, and records the result. */
export interface SavingApproval {
  /** Throws if the user refuses, or if no user can be asked. */
  ask(review: Review, context: SavingContext): Promise<void>;
  /** Writes an event about the capability to the journal. */
  record(event: "saved", review: Review): Promise<void>;
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
   * Checks `save_as` and creates the parameters. Throws if the capability cannot be saved, so
   * that its code does not run needlessly.
   */
  prepare(saveAs: Json, { kind, text }: Pick<Capability, "kind" | "text">): PreparedCapability {
    const { name, description, parameters = {} } = parseSaveAs(saveAs);
    const id = this.parseName(name);
    if (text.length > TEXT_MAX) {
      throw savingError("INPUT_TOO_LARGE", id, `it has more than ${TEXT_MAX} characters`);
    }
    const { notes, ...replaced } = parametrize({ kind, text }, parameters);
    return { id, capability: { kind, ...replaced, ...withoutUndefined({ description }) }, notes };
  }

  /** Parses a name as an id. Throws if it is invalid or its namespace is the name of a server. */
  parseName(name: string): ToolId {
    const id = capabilityId(name);
    const { server } = splitToolId(id);
    const owner = this.#parts.names.ownerOf(server);
    // guard: capability-name
    if (owner === undefined) return id;
    throw savingError("NAME_CONFLICT", id, `${quoted(server)} is ${owner}`);
  }

  /** Parses an export. Throws if it is invalid, its hash does not match or its name is taken. */
  parse(value: Readonly<Record<string, Json>>, name = value.name): PreparedCapability {
    const id = this.parseName(`${name}`);
    try {
      return { id, capability: parseExported(value), notes: [] };
    } catch (error) {
      throw savingError("INTEGRITY_MISMATCH", id, asPmlError(error).message);
    }
  }

  /** Returns the information that the user approves. `calledTools` are the tools of the run. */
  async review(
    { id, capability, notes }: PreparedCapability,
    calledTools: readonly string[] = [],
  ): Promise<Review> {
    const { capabilities, servers, names: taken } = this.#parts;
    const moreFacts = [...notes];
    let { toolsUsed } = capability;
    const names = [...calledTools, ...findToolNames(capability)];
    const ids = [...new Set(names.flatMap((name) => servers.idOf(name) ?? []))].sort();
    if (toolsUsed !== undefined) {
      // A capability from a file brings its own list of tools.
      const listedTools = new Set(Object.keys(toolsUsed));
      moreFacts.push(
        ...ids.filter((tool) => !listedTools.has(tool)).map((tool) =>
          `It names ${tool}, which its own list of tools omits`
        ),
      );
    } else {
      toolsUsed = capabilities.hashesOf(await capabilities.definitionsOf(ids));
      const unknown = ids.filter((tool) => toolsUsed?.[tool] === undefined);
      moreFacts.push(...unknown.map((tool) => `It names ${tool}, which is not known here`));
    }
    const complete: Capability = { ...capability, toolsUsed };
    const cycle = capabilities.findCycle(id, complete);
    // guard: capability-cycle
    if (cycle !== undefined) {
      throw savingError("BAD_ARGUMENTS", id, `it would call itself: ${cycle.join(" calls ")}`);
    }
    const hash = capabilityHash(complete);
    const replacedHash = capabilities.store.readApproved().get(id);
    const hidden = taken.describeHidden(id);
    const { facts } = await this.describe(complete);
    return {
      id,
      hash,
      facts: [
        `Yes saves this ${complete.kind} as the tool "${id}", for all workspaces`,
        ...(replacedHash === undefined
          ? []
          : [`It replaces the current capability of this name: ${replacedHash}`]),
        ...(hidden === undefined ? [] : [`It hides ${hidden}`]),
        ...moreFacts,
        ...facts,
      ],
      capability: complete,
      replacedHash,
    };
  }

  /** Saves a capability that the user saw and approved. */
  async accept({ id, capability, replacedHash }: Review): Promise<void> {
    await this.#parts.capabilities.save(id, capability, replacedHash);
  }

  /**
   * Describes a capability for the user. `stale` contains the changes of its tools since it was
   * saved; `facts` includes them.
   */
  async describe(
    capability: Capability,
  ): Promise<{ readonly facts: readonly string[]; readonly stale: readonly string[] }> {
    const { capabilities, policy } = this.#parts;
    const { description, parameters, toolsUsed, text } = capability;
    const { lines, gone } = await capabilities.findChanges(capability, { asksServer: true });
    const stale = [...gone.map((tool) => `${tool} is gone`), ...lines];
    const verbs = { allow: "runs", ask: "asks you", deny: "is denied" };
    const tools = Object.keys(toolsUsed) as ToolId[]; // ids of tools that were found
    const facts = [
      `its hash: ${capabilityHash(capability)}`,
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
   * Asks the user, and saves the capability if the user approves. Returns the outcome, which the
   * result of the tool call includes. A refusal does not make the run fail.
   */
  async save(
    prepared: PreparedCapability,
    calledTools: readonly string[],
    context: SavingContext,
  ): Promise<JsonObject> {
    const { id, capability: { kind, parameters }, notes } = prepared;
    try {
      const review = await this.review(prepared, calledTools);
      // guard: capability-ask
      await this.#parts.approval.ask(review, context);
      await this.accept(review);
      await this.#parts.approval.record("saved", review);
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
        ? `It ran, but was not saved. Write it to a file, and ask the user to run ` +
          `\`pml capability save ${id} --${kind} FILE\``
        : undefined;
      return { saved: false, error: withoutUndefined({ code, message, hint }) };
    }
  }
}

/** Returns the JSON that is exported. */
export function exportForm(id: ToolId, capability: Capability): JsonObject {
  return { name: id, hash: capabilityHash(capability), ...toFileJson(capability) };
}

/** Hints by error code. */
const HINTS = {
  BAD_ARGUMENTS: "Remove one of these calls",
  INPUT_TOO_LARGE: "Save less at once",
  INTEGRITY_MISMATCH: "Export it again with `pml capability export`",
  NAME_CONFLICT: "Choose a namespace that names no server, such as my",
} as const;

function savingError(code: keyof typeof HINTS, id: ToolId, why: string): PmlError {
  return new PmlError(code, `Cannot save "${id}": ${why}`, { hint: HINTS[code] });
}

interface SaveAs {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: JsonObject;
}

function parseSaveAs(value: Json): SaveAs {
  const { name, description, parameters, ...rest } = isObject(value) ? value : { name: value };
  const [other] = Object.keys(rest);
  const why = other !== undefined
    ? `has an unknown key ${quoted(other)}`
    : typeof name === "string" && ["undefined", "string"].includes(typeof description) &&
        (parameters === undefined || isObject(parameters))
    ? undefined
    : "is not valid";
  // `why` is undefined, so the members have the types of `SaveAs`.
  if (why === undefined) {
    return withoutUndefined({ name, description, parameters }) as unknown as SaveAs;
  }
  throw new PmlError("BAD_ARGUMENTS", `Cannot save this: save_as ${why}`, {
    hint: 'Send "namespace:action", or {"name", "description"?, "parameters"?: {"city": "Paris"}}',
  });
}

/** The saved capabilities, and the service that saves new ones. */
export interface OpenCapabilities {
  readonly capabilities: Capabilities;
  readonly saving: CapabilitySaving;
}

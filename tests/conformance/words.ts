/**
 * Types and functions of the tools and prompts of the conformance fixture.
 *
 * @module
 */

import type { ServerContext } from "@modelcontextprotocol/server";

/** The revision of a fixture. */
export type Kind = "legacy" | "modern";

export type Json = Record<string, unknown>;
export type Requests = Record<string, { readonly method: string; readonly params: Json }>;
export type Answers = Readonly<Record<string, Json>>;

/** The context of a tool or a prompt. */
export interface At {
  readonly args: Json;
  readonly context: ServerContext;
  /** The capabilities that the client declares. */
  readonly able: Json;
  /**
   * Asks the client; returns undefined if the client has to repeat the request with the answers.
   */
  readonly ask: (requests: Requests) => Promise<Answers | undefined>;
  /** Changes a list, and sends its notification. */
  readonly changed: (list: "tools" | "prompts") => void | Promise<void>;
}

export interface Tool {
  readonly does: string;
  readonly inputSchema?: Json;
  readonly run: (at: At) => unknown;
}

export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
export const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
export const IMAGE = { type: "image", data: PNG, mimeType: "image/png" };
export const STATE = "state-of-the-fixture";

export const text = (text: string) => ({ type: "text", text });
export const content = (...blocks: readonly object[]) => ({ content: blocks });
export const object = (properties: Json, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
});
export const string = { type: "string" };

export const form = (message: string, requestedSchema: object) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema },
});
export const sample = (prompt: string, maxTokens: number) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(prompt) }], maxTokens },
});
export const roots = { method: "roots/list", params: {} };
export const NAME = form("What is your name?", object({ name: string }));

export const DEFAULTS = object({
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
}, []);
export const ENUMS = object({
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: {
    type: "string",
    oneOf: [
      { const: "value1", title: "First Option" },
      { const: "value2", title: "Second Option" },
      { const: "value3", title: "Third Option" },
    ],
  },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: {
    type: "array",
    items: { type: "string", enum: ["option1", "option2", "option3"] },
  },
  titledMulti: {
    type: "array",
    items: {
      anyOf: [
        { const: "value1", title: "First Choice" },
        { const: "value2", title: "Second Choice" },
        { const: "value3", title: "Third Choice" },
      ],
    },
  },
}, []);

/** Creates a tool that asks, and returns the answers. */
export function asking(does: string, requests: Requests, say: (answers: Answers) => string): Tool {
  return {
    does,
    run: async ({ ask }) => {
      const answers = await ask(requests);
      return answers && content(text(say(answers)));
    },
  };
}

export const elicited = ({ one }: Answers) =>
  `Elicitation completed: action=${one?.action}, content=${JSON.stringify(one?.content ?? {})}`;

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

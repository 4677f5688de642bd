/**
 * Asks the user on a terminal for a server during a call: a form, or a page to open.
 *
 * @module
 */

import { terminalClient } from "./terminal_client.ts";
import {
  isObject,
  type JsonObject,
  listOf,
  objectOf,
  textOf,
  textsOf,
  visible,
} from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import { askReply, askWord } from "./_terminal.ts";
import { tell } from "./out.ts";

const TEXT_MAX = 4_000;
const LINE_MAX = 400;

/** The capabilities of a terminal, as those of a client. */
const TERMINAL_CAN: JsonObject = { elicitation: { form: {}, url: {} } };

/** One field of a form, as MCP defines it. */
type Field = Readonly<Record<string, unknown>>;

/** Returns the client of calls on a terminal. */
export async function terminalForms({ app, signal }: CommandContext) {
  return await terminalClient(app, {
    able: TERMINAL_CAN,
    put: (request) => askForm(request, AbortSignal.any([signal, request.signal])),
  });
}

/** Asks the user, and returns the answer in the form of a client. */
export async function askForm(
  { params }: { readonly params: JsonObject },
  signal: AbortSignal,
): Promise<JsonObject> {
  const { message, mode, url, requestedSchema } = params;
  tell(`\n${visibleText(message)}`);
  const isPage = mode === "url";
  if (isPage) tell(visible(textOf(url), TEXT_MAX));
  const reply = await askReply(isPage ? "Open it, and say when you are done:" : "Answer it?", {
    signal,
  });
  if (reply === "cancelled") return { action: "cancel" };
  if (reply !== "Yes") return { action: "decline" };
  if (isPage) return { action: "accept" };
  const { properties, required } = objectOf(requestedSchema);
  const needed = textsOf(required);
  const content: Record<string, JsonObject[string]> = {};
  for (const [name, property] of Object.entries(objectOf(properties))) {
    const field = objectOf(property);
    const answer = await askField(field, { name, isNeeded: needed.includes(name), signal });
    if (answer === "cancelled") return { action: "cancel" };
    if (answer !== undefined) content[name] = answer.value;
  }
  return { action: "accept", content };
}

/** Asks for one field until its value fits; Enter takes the default or leaves it out. */
async function askField(
  field: Field,
  { name, isNeeded, signal }: {
    readonly name: string;
    readonly isNeeded: boolean;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly value: JsonObject[string] } | "cancelled" | undefined> {
  const { title, description, default: preset } = field;
  const choices = choicesOf(field);
  const kind = choices.length > 0 ? `one of ${choices.join(", ")}` : textOf(field.type) || "text";
  const hint = preset === undefined
    ? isNeeded ? "" : ", Enter leaves it out"
    : `, Enter takes ${JSON.stringify(preset)}`;
  const what = field.type === "array" ? `${kind}; several with commas` : kind;
  const question = visible(
    `${textOf(title) || name} (${what}${hint}) ${textOf(description)}`.trim(),
    LINE_MAX,
  );
  for (;;) {
    const typed = await askWord(question, signal);
    if (typed === undefined) return "cancelled";
    if (typed === "" && preset !== undefined) return { value: preset as JsonObject[string] };
    if (typed === "" && !isNeeded) return undefined;
    const value = valueOf(typed, field, choices);
    if (value !== undefined) return { value };
    tell(`That is not ${kind}${typed === "" ? ", and an answer is needed" : ""}`);
  }
}

/** Returns the values that a field may have, if they are named. */
function choicesOf(field: Field): readonly string[] {
  const { enum: named, oneOf, anyOf } = { ...field, ...objectOf(field.items) };
  const titled = [oneOf, anyOf].flatMap(listOf)
    .flatMap((one) => isObject(one) && one.const !== undefined ? [one.const] : []);
  // A value of another kind cannot be typed.
  return [...listOf(named), ...titled].filter((one) => Object(one) !== one)
    .map(String);
}

function valueOf(
  typed: string,
  { type }: Field,
  choices: readonly string[],
): JsonObject[string] | undefined {
  if (type === "array") {
    const all = typed.split(",").map((one) => one.trim()).filter(Boolean);
    return all.every((one) => choices.includes(one)) ? all : undefined;
  }
  if (choices.length > 0) return choices.includes(typed) ? typed : undefined;
  switch (type) {
    case "boolean": {
      const answer = typed.toLowerCase();
      if (["y", "yes", "true"].includes(answer)) return true;
      return ["n", "no", "false"].includes(answer) ? false : undefined;
    }
    case "integer":
    case "number": {
      const number = typed === "" ? NaN : Number(typed);
      const fits = type === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number);
      return fits ? number : undefined;
    }
    default:
      return typed === "" ? undefined : typed;
  }
}

function visibleText(text: unknown): string {
  return textOf(text).split("\n").map((line) => visible(line, TEXT_MAX)).join("\n");
}

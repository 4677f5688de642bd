/**
 * Shows the user a form, or the address of a page, on a terminal if a server asks during a call.
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

/** The maximum length of a line of the server's message. */
const TEXT_MAX = 4_000;
/** The maximum length of the question about one field. */
const QUESTION_MAX = 400;

/** The capabilities of a terminal, in the form of a client's capabilities. */
const TERMINAL_CAPABILITIES: JsonObject = { elicitation: { form: {}, url: {} } };

/** One field of a form, as MCP defines it. */
type Field = Readonly<Record<string, unknown>>;

/** Returns the functions of a call's client that ask on a terminal. */
export async function terminalForms({ app, signal }: CommandContext) {
  return await terminalClient(app, {
    capabilities: TERMINAL_CAPABILITIES,
    askUser: (request) => askForm(request, AbortSignal.any([signal, request.signal])),
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
  const reply = await askReply(isPage ? "Open it, and answer when you are done:" : "Answer it?", {
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

/** Asks for one field until its value is valid. Enter takes the default, or leaves the field out. */
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
  const format = field.type === "array" ? `${kind}; several with commas` : kind;
  const question = visible(
    `${textOf(title) || name} (${format}${hint}) ${textOf(description)}`.trim(),
    QUESTION_MAX,
  );
  for (;;) {
    const typed = await askWord(question, signal);
    if (typed === undefined) return "cancelled";
    if (typed === "" && preset !== undefined) return { value: preset as JsonObject[string] };
    if (typed === "" && !isNeeded) return undefined;
    const value = parseValue(typed, field, choices);
    if (value !== undefined) return { value };
    tell(`That is not ${kind}${typed === "" ? ", and an answer is needed" : ""}`);
  }
}

/** Returns the possible values of a field; an empty list if its schema does not list them. */
function choicesOf(field: Field): readonly string[] {
  const { enum: listed, oneOf, anyOf } = { ...field, ...objectOf(field.items) };
  const titled = [oneOf, anyOf].flatMap(listOf)
    .flatMap((choice) => isObject(choice) && choice.const !== undefined ? [choice.const] : []);
  // The user cannot type an object or a list.
  return [...listOf(listed), ...titled].filter((value) => Object(value) !== value)
    .map(String);
}

function parseValue(
  typed: string,
  { type }: Field,
  choices: readonly string[],
): JsonObject[string] | undefined {
  if (type === "array") {
    const values = typed.split(",").map((value) => value.trim()).filter(Boolean);
    return values.every((value) => choices.includes(value)) ? values : undefined;
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
      const isValid = type === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number);
      return isValid ? number : undefined;
    }
    default:
      return typed === "" ? undefined : typed;
  }
}

function visibleText(text: unknown): string {
  return textOf(text).split("\n").map((line) => visible(line, TEXT_MAX)).join("\n");
}

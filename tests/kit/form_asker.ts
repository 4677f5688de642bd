/**
 * Shows a form to the user on its terminal, as `pml call` does, and prints the answer.
 *
 *     deno run -A form_asker.ts SCHEMA
 *
 * @module
 */

import { askForm } from "../../src/cli/_form.ts";
import { endInput } from "../../src/cli/_terminal_input.ts";

if (import.meta.main) {
  const requestedSchema = JSON.parse(Deno.args[0] ?? "{}");
  const params = { message: "Fill this in\nplease\u001b[2J", requestedSchema };
  const answer = await askForm({ params }, new AbortController().signal);
  endInput();
  console.log(`answer: ${JSON.stringify(answer)}`);
}

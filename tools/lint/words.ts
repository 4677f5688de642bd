/**
 * Forbids meaningless file names and mutable module state in `src/`.
 *
 * @module
 */

import { HUB_MODULES, MODULES } from "./layers.ts";
import { type Place, placeOf } from "./place.ts";

const MEANINGLESS_NAMES = "utils util helpers helper types constants shared common index mod";
const SNAKE_CASE = /^_?[a-z0-9]+(_[a-z0-9]+)*\.ts$/;

/** Reports meaningless file names, files outside of modules, and variables at the top level. */
export const words: Deno.lint.Rule = {
  create(context) {
    const place = placeOf(context.filename);
    if (!place.inSource) return {};
    const checkVariable = (node: Deno.lint.VariableDeclaration) => {
      if (node.kind === "const" || node.kind === "using" || node.declare) return;
      const message = `A module cannot have state: "${node.kind}" at the top level`;
      context.report({ node, message, hint: "Move it to an object that is created and closed" });
    };
    return {
      Program(node) {
        const found = nameOffence(place);
        if (found !== undefined) context.report({ node, ...found });
      },
      "Program > VariableDeclaration": checkVariable,
      "Program > ExportNamedDeclaration > VariableDeclaration": checkVariable,
      "Program > ExportDefaultDeclaration"(node: Deno.lint.ExportDefaultDeclaration) {
        const hint = "Export it by its name";
        context.report({ node, message: "A default export has no name", hint });
      },
    };
  },
};

function nameOffence(
  place: Place,
): { readonly message: string; readonly hint: string } | undefined {
  const name = place.path.split("/").at(-1) ?? "";
  const stem = name.replace(/(_test)?\.ts$/, "").replace(/^_/, "");
  if (MEANINGLESS_NAMES.split(" ").includes(stem)) {
    const hint =
      "Name it after its main export; a type belongs next to the function that creates it";
    return { message: `"${name}" does not describe the content`, hint };
  }
  if (!SNAKE_CASE.test(name)) {
    return { message: `"${name}" is not in snake_case`, hint: "Use a-z, 0-9 and '_'" };
  }
  if (!(place.project === "hub" ? HUB_MODULES : MODULES).includes(place.module)) {
    const hint = "The modules are listed in tools/lint/layers.ts";
    return { message: `"${place.path}" belongs to no module`, hint };
  }
  return undefined;
}

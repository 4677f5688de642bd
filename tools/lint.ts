/**
 * The lint rules of the project: layers, server kinds, powers, sizes, words, and the wording in
 * assertions.
 *
 * @module
 */

import { kinds } from "./lint/kinds.ts";
import { powers } from "./lint/powers.ts";
import { layers } from "./lint/layers.ts";
import { sizes } from "./lint/sizes.ts";
import { wording } from "./lint/wording.ts";
import { words } from "./lint/words.ts";

const plugin: Deno.lint.Plugin = {
  name: "pml",
  rules: { layers, kinds, powers, sizes, wording, words },
};

export default plugin;

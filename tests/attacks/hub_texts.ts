/**
 * Texts of manifests that a hub refuses or accepts.
 *
 * @module
 */

/** Texts that a hub refuses, and texts that it accepts. */
export const HUB_TEXTS = {
  /** Texts with a hidden character, and that character. */
  hidden: [
    ["Goes\u{e0049}\u{e0067}\u{e006e}", "U+E0049"],
    ["Goes\u{fe01}\u{fe02}", "U+FE01"],
    ["Goes\u{e0100}", "U+E0100"],
    ["Go\u{200d}\u{200d}es", "U+200D"],
    ["Go\u{200c}es", "U+200C"],
    ["\u{1f600}\u{e0041}", "U+E0041"],
    ["Goes \u{3164}", "U+3164"],
    ["Goes \u{2800}", "U+2800"],
    ["Go\u{34f}es", "U+034F"],
    ["Go\u{ad}es", "U+00AD"],
    ["Goes \u{202e}", "U+202E"],
    ["\u{915}\u{94d}\u{200d}\u{200d}", "U+200D"],
  ],
  seen: [
    "Goes\tto\nthe next line",
    "Gr\u{fc}\u{df}e, \u{4f60}\u{597d}, \u{43f}\u{440}\u{438}\u{432}\u{435}\u{442}",
    "\u{1f469}\u{200d}\u{1f4bb} \u{2764}\u{fe0f} \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}, \u{915}\u{94d}\u{200d}\u{937}",
    "\u{394}t of the g\u{456}thub",
  ],
  /** Words that look like other words. */
  alike: ["g\u{456}thub", "\u{ff47}ithub", "\u{1d420}ithub", "acm\u{435}-server", "p\u{3b1}y"],
  plain: ["github", "@scope/server@1.2.3", "--title=Gr\u{fc}\u{df}e", "--\u{43f}\u{440}\u{438}"],
} as const;

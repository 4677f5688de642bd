/**
 * Writes `docs/limits.md`: every limit that can be configured, from the code that defines it, and
 * the fixed ones. `deno task limits --check` only compares.
 *
 * @module
 */

import { keyOf, LIMIT_NAMES, type LimitName, LIMITS } from "../src/config/limits.ts";

const PAGE = new URL("../docs/limits.md", import.meta.url);
const SOURCE = new URL("../src/config/limits.ts", import.meta.url);
/** The fixed limits stand below this line of the page, and are written by hand. */
const FIXED = "## Limits that are fixed";

/** Returns the page: its first part made anew, the fixed limits as they are. */
export async function limitsPage(): Promise<string> {
  const source = await Deno.readTextFile(SOURCE);
  const rows = LIMIT_NAMES.map((name) => {
    const [usual, least, most] = LIMITS[name].map((value) => shown(name, value));
    return `| \`${keyOf(name)}\` | ${meaningOf(name, source)} | ${usual} | ${least} to ${most} |`;
  });
  const page = await Deno.readTextFile(PAGE).catch(() => `\n${FIXED}\n`);
  return [
    "# Limits",
    "",
    "Every limit is finite. Those with a key can be set under `limits` in `config.yaml` of the PML home,",
    "in milliseconds, bytes or megabytes as the end of the key says.",
    "",
    "## Limits that can be set",
    "",
    "| key | what it bounds | default | from, to |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    page.slice(page.indexOf(FIXED)),
  ].join("\n");
}

function meaningOf(name: LimitName, source: string): string {
  const [, comment = ""] =
    new RegExp(`/\\*\\*((?:(?!\\*/)[^])*)\\*/\\s*${name}: \\[`).exec(source) ?? [];
  return comment.replaceAll(/\s*\n\s*\* ?/g, " ").trim();
}

function shown(name: LimitName, value: number): string {
  const units: readonly (readonly [unit: string, size: number])[] = name.endsWith("Ms")
    ? [["h", 3_600_000], ["min", 60_000], ["s", 1_000], ["ms", 1]]
    : name.endsWith("Bytes")
    ? [["GB", 1024 ** 3], ["MB", 1024 ** 2], ["KB", 1024], ["bytes", 1]]
    : name.endsWith("Mb")
    ? [["MB", 1]]
    : [["", 1]];
  const [unit, size] = units.find(([, size]) => value >= size && value % size === 0) ?? ["", 1];
  return `${(value / size).toLocaleString("en-US")} ${unit}`.trim();
}

/** Returns the page as `deno fmt` writes it. */
export async function formatted(page: string): Promise<string> {
  const file = await Deno.makeTempFile({ suffix: ".md" });
  try {
    await Deno.writeTextFile(file, page);
    const args = ["fmt", "-q", "--line-width", "100", file];
    const { success } = await new Deno.Command(Deno.execPath(), { args }).output();
    if (!success) throw new Error("`deno fmt` failed");
    return await Deno.readTextFile(file);
  } finally {
    await Deno.remove(file);
  }
}

if (import.meta.main) {
  const page = await formatted(await limitsPage());
  if (!Deno.args.includes("--check")) await Deno.writeTextFile(PAGE, page);
  else if (page !== await Deno.readTextFile(PAGE)) {
    console.error("docs/limits.md differs from the code: run `deno task limits`");
    Deno.exitCode = 1;
  }
}

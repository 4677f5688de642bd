/**
 * Describes the module: its tools, their schemas and permissions.
 *
 * @module
 */

type Properties = Readonly<Record<string, object>>;
type Rows = Readonly<Record<string, readonly [properties: Properties, text: string, own?: object]>>;

const READ: { readonly read: string[]; readonly write?: string[] } = { read: ["."] };
const OPTIONAL = ["head", "tail", "dryRun", "sortBy", "excludePatterns", "recursive"];
const TEXT = { type: "string" };
const PATH = { ...TEXT, description: "Relative to the workspace, or absolute inside it" };
const GLOB = { ...TEXT, minLength: 1, maxLength: 1_000 };
const FLAG = { type: "boolean", default: false };
const LINES = { type: "integer", minimum: 1 };
const RANGE = {
  path: PATH,
  head: { ...LINES, description: "Only the first N lines" },
  tail: { ...LINES, description: "Only the last N lines; not with head" },
};
const EXCLUDE = {
  type: "array",
  items: GLOB,
  description: "Globs to leave out; a name without * is left out at any depth",
};
const EDITS = {
  type: "array",
  minItems: 1,
  items: input({
    oldText: { ...TEXT, minLength: 1, description: "Must occur exactly once" },
    newText: TEXT,
  }),
};

const STAT = {
  type: "object",
  properties: {
    type: { enum: ["file", "directory", "link", "other"] },
    size: { type: "integer" },
    created: TEXT,
    modified: TEXT,
    accessed: TEXT,
    permissions: TEXT,
  },
  required: ["type", "size"],
};

/** Describes the module and its tools. */
export const __meta__ = {
  name: "filesystem",
  version: "1.0.0",
  description: "Read, write, edit, find and organize files in the workspace",
  permissions: READ,
  tools: {
    ...tools({ readOnlyHint: true }, {
      read_file: [RANGE, "Read a UTF-8 text file: all, or its first or last lines"],
      read_text_file: [RANGE, "The same as read_file"],
      read_media_file: [{ path: PATH }, "Read an image, audio or other binary file as base64"],
      read_multiple_files: [
        { paths: { type: "array", minItems: 1, items: PATH } },
        "Read several text files; one that cannot be read is reported in its place",
      ],
      list_directory: [{ path: PATH }, "List a folder: [DIR], [FILE] or [LINK] and name, by line"],
      list_directory_with_sizes: [
        { path: PATH, sortBy: { ...TEXT, enum: ["name", "size"], default: "name" } },
        "List a folder with the size of each file and their sum",
      ],
      directory_tree: [
        { path: PATH, excludePatterns: EXCLUDE },
        "Show all below a folder but .git, as JSON: name, type, and children of folders",
      ],
      search_files: [
        { path: PATH, pattern: GLOB, excludePatterns: EXCLUDE },
        "Find files and folders by name, not content, with a glob over their paths below a " +
        "folder, without .git: *.ts matches only directly in it, **/*.ts at any depth; ? and {a,b} work too",
      ],
      get_file_info: [{ path: PATH }, "Show type, size, times and mode of a path", {
        outputSchema: STAT,
      }],
      list_allowed_directories: [{}, "Show the workspace, the folder that these tools reach"],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: true, idempotentHint: false }, {
      edit_file: [
        { path: PATH, edits: EDITS, dryRun: FLAG },
        "Replace parts of a text file, all edits in order or none, and show the diff. " +
        "Where oldText is not found as it is, whole lines match without their indentation",
      ],
      move_file: [
        { source: PATH, destination: PATH },
        "Move or rename a file or folder; never replaces one",
      ],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: true, idempotentHint: true }, {
      write_file: [{ path: PATH, content: TEXT }, "Create or replace a text file"],
      remove_file: [{ path: PATH }, "Delete a file, or a link itself, for good"],
      remove_directory: [
        { path: PATH, recursive: { ...FLAG, description: "Also delete its content" } },
        "Delete a folder for good",
      ],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: false, idempotentHint: true }, {
      create_directory: [{ path: PATH }, "Create a folder, with its parents"],
    }),
  },
};

function tools(
  hints: { readonly readOnlyHint: boolean; readonly [hint: string]: boolean },
  rows: Rows,
) {
  return Object.fromEntries(
    Object.entries(rows).map(([name, [properties, description, own]]) => {
      const title = name.charAt(0).toUpperCase() + name.slice(1).replaceAll("_", " ");
      const annotations = { title, ...hints, openWorldHint: false };
      const permissions = hints.readOnlyHint ? READ : { ...READ, write: ["."] };
      const inputSchema = input(properties);
      return [name, { description, inputSchema, ...own, annotations, permissions }];
    }),
  );
}

function input(properties: Properties) {
  const required = Object.keys(properties).filter((name) => !OPTIONAL.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

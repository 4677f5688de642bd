/**
 * Describes the module: its tools, their schemas and permissions.
 *
 * @module
 */

type Properties = Readonly<Record<string, object>>;
type Row = readonly [properties: Properties, text: string, output: Properties];

const READ: { readonly read: string[]; readonly run: string[]; readonly write?: string[] } = {
  read: ["."],
  run: ["git"],
};
const REQUIRED = ["blame.path", "stash.action", "restore.paths"];
const TEXT = { type: "string" };
const FLAG = { type: "boolean", default: false };
const COUNT = { type: "integer", minimum: 0 };
const REPO = {
  ...TEXT,
  default: ".",
  description: "A folder of the repository; paths start at its root",
};
const PATH = { ...TEXT, minLength: 1, description: "Relative to the root of the repository" };
const PATHS = {
  type: "array",
  items: PATH,
  maxItems: 1_000,
  description: "Files or folders, no globs",
};
const REVISION = { ...TEXT, minLength: 1, description: "A branch, tag, hash, or such as HEAD~2" };
const CONTEXT = { ...COUNT, maximum: 1_000, default: 3, description: "Lines around each change" };
const OFFSET = { ...COUNT, default: 0, description: "Where a cut text goes on" };
const LIST = (item: object) => ({ type: "array", items: item });
const OBJECT = (properties: Properties, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
});

const COMMIT = OBJECT({
  hash: TEXT,
  parents: LIST(TEXT),
  author: OBJECT({ name: TEXT, email: TEXT }),
  date: TEXT,
  refs: LIST(TEXT),
  subject: TEXT,
  body: TEXT,
}, ["hash", "parents", "author", "date", "refs", "subject"]);
const CHANGES = {
  files: LIST(
    OBJECT({ path: TEXT, from: TEXT, status: TEXT, additions: COUNT, deletions: COUNT }, [
      "path",
      "status",
    ]),
  ),
  file_count: COUNT,
  additions: COUNT,
  deletions: COUNT,
  patch: TEXT,
  next_offset: COUNT,
  characters: COUNT,
};

/** Describes the module and its tools. */
export const __meta__ = {
  name: "git",
  version: "1.0.0",
  description: "Look at and change git repositories of the workspace; nothing is fetched or pushed",
  permissions: READ,
  tools: {
    ...tools({ readOnlyHint: true }, {
      status: [
        {
          paths: PATHS,
          limit: limit(500, 5_000),
          untracked: { ...FLAG, default: true, description: "Show files that git does not know" },
        },
        "Show the branch and the files that changed, two letters each: in the index, in the work tree",
        {
          root: { ...TEXT, description: "Relative to the workspace" },
          branch: { type: ["string", "null"], description: "Null where HEAD is detached" },
          commit: { type: ["string", "null"], description: "Null before the first commit" },
          upstream: TEXT,
          ahead: COUNT,
          behind: COUNT,
          stashes: COUNT,
          operation: { ...TEXT, description: "The operation in progress, such as a merge" },
          files: LIST(OBJECT({ path: TEXT, from: TEXT, staged: TEXT, unstaged: TEXT }, ["path"])),
          file_count: COUNT,
        },
      ],
      diff: [
        {
          staged: { ...FLAG, description: "The index, not the work tree" },
          from: REVISION,
          to: REVISION,
          paths: PATHS,
          context: CONTEXT,
          offset: OFFSET,
        },
        "Show changes as a patch: of the work tree against the index, or against from, " +
        "or between from and to",
        CHANGES,
      ],
      log: [
        {
          revision: { ...REVISION, default: "HEAD", description: "Or a range such as main..topic" },
          path: PATH,
          follow: { ...FLAG, description: "Follow path, a file, through renames" },
          author: TEXT,
          grep: { ...TEXT, description: "Text in the message" },
          since: { ...TEXT, description: "A date, or such as 2 weeks ago" },
          until: TEXT,
          limit: limit(20, 500),
          skip: COUNT,
        },
        "List commits, the latest first",
        { commits: LIST(COMMIT), next_skip: COUNT },
      ],
      show: [
        {
          revision: { ...REVISION, default: "HEAD" },
          path: PATH,
          context: CONTEXT,
          offset: OFFSET,
        },
        "Show a commit with its patch or, with path, a file or folder as it was at the revision",
        { ...CHANGES, commit: COMMIT, content: { ...TEXT, description: "Of the file" } },
      ],
      blame: [
        {
          path: PATH,
          revision: REVISION,
          start: { type: "integer", minimum: 1, default: 1, description: "The first line" },
          limit: limit(200, 2_000),
        },
        "Tell for each line of a file which commit changed it last",
        {
          lines: LIST(OBJECT({ line: COUNT, hash: TEXT, author: TEXT, date: TEXT, content: TEXT })),
          next_start: COUNT,
        },
      ],
      branches: [
        { remote: { ...FLAG, description: "Those of remotes too" }, limit: limit(100, 1_000) },
        "List branches with their last commit, the latest first",
        {
          branches: LIST(OBJECT({
            name: TEXT,
            current: { type: "boolean" },
            remote: { type: "boolean" },
            hash: TEXT,
            date: TEXT,
            subject: TEXT,
            upstream: TEXT,
            gone: { type: "boolean" },
            ahead: COUNT,
            behind: COUNT,
          }, ["name", "current", "remote", "hash", "date", "subject"])),
          more: { type: "boolean" },
        },
      ],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: false, idempotentHint: true }, {
      add: [
        { paths: PATHS, all: { ...FLAG, description: "All that changed" } },
        "Stage files, removed ones too, for the next commit; give paths or all",
        {
          staged: LIST(OBJECT({ path: TEXT, change: TEXT })),
          staged_count: COUNT,
          left_out: LIST(TEXT),
        },
      ],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: false, idempotentHint: false }, {
      commit: [
        {
          message: TEXT,
          paths: { ...PATHS, description: "Commit only these, as they are in the work tree" },
          all: { ...FLAG, description: "Stage all changes to files that git knows first" },
          amend: {
            ...FLAG,
            description: "Replace the last commit; keeps its message if none is given",
          },
          allow_empty: FLAG,
        },
        "Commit the staged changes. Hooks do not run and nothing is signed",
        { hash: TEXT },
      ],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: true, idempotentHint: true }, {
      restore: [
        {
          paths: { ...PATHS, minItems: 1 },
          staged: { ...FLAG, description: "Take them out of the index; the files stay" },
          source: {
            ...REVISION,
            description: "The revision; the index, or for staged HEAD, unless given",
          },
        },
        "Bring files back and lose their changes for good, or unstage them",
        { restored: LIST(TEXT), restored_count: COUNT },
      ],
    }),
    ...tools({ readOnlyHint: false, destructiveHint: true, idempotentHint: false }, {
      stash: [
        {
          action: { enum: ["push", "list", "show", "apply", "pop", "drop"] },
          stash: { ...COUNT, default: 0, description: "Which, 0 is the latest" },
          message: { ...TEXT, description: "For push" },
          paths: { ...PATHS, description: "For push; all changes unless given" },
          untracked: { ...FLAG, description: "For push: new files too" },
          restore_index: {
            ...FLAG,
            description: "For apply and pop: also restore the staged changes",
          },
          offset: OFFSET,
        },
        "Put changes aside (push), list or show them, bring them back (apply, pop), or drop them",
        {
          ...CHANGES,
          files: { type: "array" },
          done: { type: "boolean" },
          stashes: LIST(OBJECT({ stash: COUNT, hash: TEXT, date: TEXT, said: TEXT })),
        },
      ],
    }),
  },
};

function tools(
  hints: { readonly readOnlyHint: boolean; readonly [hint: string]: boolean },
  rows: Readonly<Record<string, Row>>,
) {
  return Object.fromEntries(
    Object.entries(rows).map(([name, [properties, description, output]]) => {
      const title = `Git ${name}`;
      const required = Object.keys(properties).filter((key) => REQUIRED.includes(`${name}.${key}`));
      return [name, {
        description,
        inputSchema: {
          ...OBJECT({ repo: REPO, ...properties }, required),
          additionalProperties: false,
        },
        outputSchema: OBJECT(output, []),
        annotations: { title, ...hints, openWorldHint: false },
        permissions: hints.readOnlyHint ? READ : { ...READ, write: ["."] },
      }];
    }),
  );
}

function limit(usual: number, maximum: number) {
  return { type: "integer", minimum: 1, maximum, default: usual };
}

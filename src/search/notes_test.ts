import assert from "node:assert/strict";
import { assertGolden } from "../../tests/kit/golden.ts";
import { catalogOf, tool } from "./_servers_fixture_test.ts";
import { Catalog } from "./catalog.ts";
import { noteText } from "./notes.ts";
import { Search, type SearchOptions } from "./search.ts";
import { termsOf } from "./terms.ts";
import { vectorsText, WordVectors } from "./word_vectors.ts";

const COMMON =
  "send file read issue open pull request upload channel message today bake cake server";
const WORDS = new WordVectors(
  vectorsText(
    termsOf(`${COMMON} samsung`),
    new Float32Array(64 * termsOf(`${COMMON} samsung`).length).fill(1),
    termsOf(COMMON).length,
  ),
);
const SERVERS = {
  chat: { send_message: "Send a message to a channel", list_channels: "List channels" },
  files: { read_file: "Read a file", upload_file: "Upload a file to HubSpot or jira" },
};

/** Returns the kind and the words of each note. */
async function notesOn(
  query: string | readonly string[],
  options: SearchOptions = {},
): Promise<readonly string[]> {
  const search = new Search(catalogOf(SERVERS), {
    words: () => WORDS,
    isTaken: (name) => name === "starting",
  });
  const { notes } = await search.search(query, options);
  return notes.map(({ about, server, words }) => `${server ?? about} ${words.join(" ")}`);
}

Deno.test("search() names words that no tool has, except common English words", async () => {
  assert.deepEqual(await notesOn("send a file with PagerDuty today"), [
    "tools pagerduty",
  ]);
  assert.deepEqual(await notesOn("read the Samsung's file"), ["tools samsung"]);
  assert.deepEqual(await notesOn("upload a file to HubSpot and Jira"), []);
  assert.deepEqual(await notesOn("someone should bake everything"), []);
  assert.deepEqual(await notesOn(["read a trello file", "send an asana message or zendesk"]), [
    "tools trello asana",
  ]);
});

Deno.test("search() names no quotes, ids, numbers, paths, short words and typing mistakes", async () => {
  for (
    const query of [
      "send \"lorem ipsum\" to `dolor` and 'amet sit'",
      "read file user_4711 ab12cd /srv/dolor/lorem.txt ../ipsum https://lorem.example/ipsum",
      "send a message to @lorem in #ipsum and to lorem@ipsum.example",
      "read an xyz file",
      "uplaod a file to a chanel",
      `read the file ${"x".repeat(25)}`,
    ]
  ) assert.deepEqual(await notesOn(query), [], query);
});

Deno.test("search() names a word if only tools have it that may not be found", async () => {
  const allowed = (id: string) => id !== "files:upload_file";
  assert.deepEqual(await notesOn("send a file to jira", { allowed }), ["tools jira"]);
  assert.deepEqual(await notesOn("send a file to jira"), []);
});

Deno.test("search() names what no tool of the named server has", async () => {
  assert.deepEqual(await notesOn("upload a file to chat"), ["chat upload file"]);
  assert.deepEqual(await notesOn("upload", { server: "chat" }), ["chat upload"]);
  assert.deepEqual(await notesOn("send a message to chat"), []);
  assert.deepEqual(await notesOn("upload files"), []);
  // A longer request is a whole task, of which one server does a part.
  const task = "read, open, pull, request, bake a cake and upload an issue of today to chat";
  assert.deepEqual(await notesOn(task), []);
});

Deno.test("search() names a server that does not exist", async () => {
  assert.deepEqual(await notesOn("pagerduty:create_incident"), ["servers pagerduty"]);
  assert.deepEqual(await notesOn("mcp__trello__move_card"), ["servers trello"]);
  assert.deepEqual(await notesOn("chat:send_message"), []);
  assert.deepEqual(await notesOn("starting:read_file"), []);
  assert.deepEqual(await notesOn("trello:move"), ["servers trello"]);
  assert.deepEqual(await notesOn("read https://lorem.example/x label:bug"), []);
  // An unknown server does not take the place of a word in the other note.
  assert.deepEqual(await notesOn("trello:move_card in trello, asana or zendesk"), [
    "servers trello",
    "tools asana zendesk",
  ]);
});

Deno.test("search() makes no notes without tools or words", async () => {
  const catalog = new Catalog();
  const search = new Search(catalog, { words: () => WORDS });
  assert.deepEqual((await search.search("trello")).notes, []);
  catalog.set({ name: "one", origin: "private" }, [tool(["read", "Read a file"])]);
  const [note] = (await search.search("trello")).notes;
  assert.deepEqual(note, { about: "tools", words: ["trello"] });
  const more = [
    { about: "servers", words: ["pagerduty"] },
    { about: "server", server: "chat", words: ["upload", "file"] },
  ] as const;
  const notes = note === undefined ? more : [note, ...more];
  assertGolden("search/notes", notes.map(noteText).join("\n"));
  assert.deepEqual((await new Search(catalog).search("trello")).notes, []);
});

/**
 * A form with a field for each argument of a tool. Its call passes the same checks and asks the same
 * questions as a call of a client.
 *
 * @module
 */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { CallAnswer, ToolPage } from "../src/control/api.ts";
import { callTool } from "./http.ts";
import { ActionButton, ProblemNote } from "./parts.tsx";
import {
  argumentsOf,
  type Entries,
  type Field,
  fieldsOf,
  initialEntries,
  isJson,
} from "./schema_form.ts";
import { addressOf, keyOf, waiting } from "./store.ts";
import { Block, duration, External, Json, plain } from "./text.tsx";
import { Question } from "./waiting.tsx";

/** Shows the form of a tool. */
export function TryTool(
  { tool, workspace }: { readonly tool: ToolPage; readonly workspace: string },
): VNode {
  const fields = fieldsOf(tool.inputSchema);
  const [entries, setEntries] = useState<Entries>(() => initialEntries(fields));
  const [jsonText, setJsonText] = useState<string>();
  const [answer, setAnswer] = useState<CallAnswer>();
  const [isRunning, setRunning] = useState(false);
  const [hasTried, setTried] = useState(false);
  const { text, problems } = argumentsOf(fields, entries);
  const isRaw = jsonText !== undefined;
  const isWrong = isRaw ? !isJson(jsonText) : problems.length > 0;
  const send = async () => {
    setTried(true);
    if (isWrong) return;
    setRunning(true);
    setAnswer(undefined);
    try {
      setAnswer(await callTool({ workspace, tool: tool.id, text: jsonText ?? text }));
    } finally {
      setRunning(false);
    }
  };
  const shownProblems = hasTried ? problems : [];
  const switchForm = () => setJsonText(isRaw ? undefined : formatJson(text));
  return (
    <form
      class="try"
      noValidate
      onSubmit={(event) => event.preventDefault()}
      aria-label="Try a call"
    >
      <header>
        <h3>Try a call</h3>
        <button type="button" class="link" onClick={switchForm}>
          {isRaw ? "As a form" : "As JSON"}
        </button>
      </header>
      {isRaw && <RawArguments text={jsonText} isWrong={hasTried && isWrong} onText={setJsonText} />}
      {!isRaw && fields.map((field) => (
        <FieldRow
          key={field.name}
          field={field}
          entry={entries.get(field.name)}
          problem={shownProblems.find(({ name }) => name === field.name)?.text}
          onEntry={(entry) => setEntries(withEntry(entries, field.name, entry))}
        />
      ))}
      {!isRaw && fields.length === 0 && <p class="calm">This tool takes no arguments.</p>}
      <p class="actions">
        <ActionButton action={send} kind="main">Call</ActionButton>
        {isRunning && <span class="calm" role="status">The call runs.</span>}
      </p>
      {isRunning &&
        waiting.value.filter((one) => `${one.server}:${one.tool}` === tool.id)
          .map((one) => <Question key={keyOf(one)} question={one} />)}
      {answer !== undefined && <CallResult answer={answer} workspace={workspace} />}
    </form>
  );
}

function RawArguments(
  { text, isWrong, onText }: {
    readonly text: string;
    readonly isWrong: boolean;
    readonly onText: (text: string) => void;
  },
): VNode {
  return (
    <label>
      Arguments
      <textarea
        name="arguments"
        rows={8}
        value={text}
        spellcheck={false}
        aria-invalid={isWrong}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {isWrong && <span class="wrong">is not JSON</span>}
    </label>
  );
}

function formatJson(text: string): string {
  // Parsing would change numbers beyond 2^53, so a text with so many digits stays as it is.
  return isJson(text) && !/\d{16}/.test(text) ? JSON.stringify(JSON.parse(text), null, 2) : text;
}

function withEntry(entries: Entries, name: string, entry: string | undefined): Entries {
  const changed = new Map(entries);
  if (entry === undefined) changed.delete(name);
  else changed.set(name, entry);
  return changed;
}

function FieldRow(
  { field, entry, problem, onEntry }: {
    readonly field: Field;
    readonly entry: string | undefined;
    readonly problem: string | undefined;
    readonly onEntry: (entry: string | undefined) => void;
  },
): VNode {
  const { name, kind, isRequired, description } = field;
  return (
    <label class="field">
      <span>
        <External text={name} />{" "}
        <small>{isRequired ? "required" : "optional"}, {KINDS[kind]}</small>
      </span>
      {description !== "" && (
        <span class="reason">
          <External text={description} />
        </span>
      )}
      <Input field={field} entry={entry} isWrong={problem !== undefined} onEntry={onEntry} />
      {problem !== undefined && <span class="wrong">{problem}</span>}
    </label>
  );
}

const KINDS: Readonly<Record<Field["kind"], string>> = {
  text: "text",
  number: "number",
  boolean: "yes or no",
  choice: "one of these",
  json: "JSON",
};

function Input(
  { field, entry, isWrong, onEntry }: {
    readonly field: Field;
    readonly entry: string | undefined;
    readonly isWrong: boolean;
    readonly onEntry: (entry: string | undefined) => void;
  },
): VNode {
  const { name, kind, choices, isRequired } = field;
  const common = { name, "aria-invalid": isWrong, "aria-required": isRequired, spellcheck: false };
  if (kind === "boolean" || kind === "choice") {
    const values = kind === "boolean" ? ["true", "false"] : choices;
    return (
      <select
        {...common}
        value={entry ?? ""}
        onChange={(event) => onEntry(event.currentTarget.value || undefined)}
      >
        <option value="">not given</option>
        {values.map((one) => <option key={one} value={one}>{plain(choiceText(one))}</option>)}
      </select>
    );
  }
  const change = (event: { readonly currentTarget: { readonly value: string } }) =>
    onEntry(
      event.currentTarget.value === "" && !isRequired ? undefined : event.currentTarget.value,
    );
  if (kind === "number") {
    return <input {...common} inputMode="decimal" value={entry ?? ""} onInput={change} />;
  }
  const rows = kind === "json" ? 3 : Math.min(8, (entry ?? "").split("\n").length);
  return <textarea {...common} rows={rows} value={entry ?? ""} onInput={change} />;
}

function choiceText(json: string): string {
  const value = JSON.parse(json);
  return typeof value === "string" ? value : json;
}

function CallResult(
  { answer, workspace }: { readonly answer: CallAnswer; readonly workspace: string },
): VNode {
  const { id, isError, ms, content, structuredContent, error } = answer;
  return (
    <div class="answer" role="status">
      <p class="facts">
        <span>
          <strong>{isError || error !== undefined ? "✕ failed" : "✓ done"}</strong>
        </span>
        <span>{duration(ms)}</span>
        {id !== undefined && (
          <span>
            <a href={addressOf("activity", { workspace, call: id })}>Its story</a>
          </span>
        )}
      </p>
      {error !== undefined && <ProblemNote problem={error} />}
      {content.map(({ type, text }, at) => (
        <Block
          key={at}
          text={text}
          label={`Result, ${type}`}
        />
      ))}
      {structuredContent !== undefined && (
        <details>
          <summary>Structured content</summary>
          <Json value={structuredContent} label="Structured content" />
        </details>
      )}
    </div>
  );
}

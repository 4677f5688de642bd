/**
 * Evaluates the conditions of `when` in a plan.
 *
 * @module
 */

import { decimalText, numberText } from "../core/exact_number.ts";
import { isObject, type Json } from "../core/json.ts";
import {
  badRequestError,
  isList,
  MissingReference,
  type ResolveRef,
  withReferences,
} from "./_refs.ts";

/** The maximum depth of `not`, `and` and `or` in a condition. */
const DEPTH_MAX = 16;
const FORMS = '{"$ref"}, {"exists": {"$ref"}}, {"equals": [a, b]}, {"not": c}, ' +
  '{"and": [c, …]}, {"or": [c, …]}';

/**
 * Returns whether a condition is true. A reference is true if its value exists and is not false,
 * null, 0 or empty. A missing value is not an error.
 */
export function isConditionTrue(condition: Json, resolve: ResolveRef, depth = 0): boolean {
  if (typeof condition === "boolean") return condition;
  if (depth > DEPTH_MAX) throw badRequestError(`\`when\` is nested deeper than ${DEPTH_MAX}`);
  if (!isObject(condition)) throw badRequestError(`\`when\` is not one of ${FORMS}`);
  const [[name, operand] = [], ...others] = Object.entries(condition as Record<string, Json>);
  if (name === undefined || operand === undefined || others.length > 0) {
    throw badRequestError(`\`when\` is not one of ${FORMS}`);
  }
  const value = (operand: Json | undefined) => valueOf(operand, resolve);
  const inner = (condition: Json) => isConditionTrue(condition, resolve, depth + 1);
  switch (name) {
    case "$ref":
      return isTrue(value({ [name]: operand }));
    case "exists":
      return value(operand) !== undefined;
    case "equals": {
      if (!isList(operand) || operand.length !== 2) {
        throw badRequestError('"equals" takes two values: [a, b]');
      }
      const [one, other] = operand.map(value);
      return one !== undefined && other !== undefined && isSame(one, other);
    }
    case "not":
      return !inner(operand);
    case "and":
    case "or": {
      if (!isList(operand) || operand.length === 0) {
        throw badRequestError(`"${name}" takes a list of conditions`);
      }
      // Every condition is evaluated, so that an invalid condition is always reported.
      const all = operand.map(inner);
      return name === "and" ? all.every(Boolean) : all.some(Boolean);
    }
    default:
      throw badRequestError(`\`when\` is not one of ${FORMS}`);
  }
}

/**
 * Returns whether two values are equal. Does not compare them as JSON texts, because most large
 * values differ early, or are the same object.
 */
function isSame(one: Json, other: Json): boolean {
  if (one === other) return true;
  const [number, another] = [numberText(one), numberText(other)];
  if (number !== undefined && another !== undefined) {
    return decimalText(number) === decimalText(another);
  }
  if (number !== undefined || another !== undefined) return false;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) {
    return false;
  }
  if (isList(one) !== isList(other)) return false;
  const entries = Object.entries(one);
  return entries.length === Object.keys(other).length &&
    entries.every(([name, value]) =>
      Object.hasOwn(other, name) && isSame(value, (other as Record<string, Json>)[name] ?? null)
    );
}

/** Resolves the references in a value; undefined if a reference has no value. */
function valueOf(value: Json | undefined, resolve: ResolveRef): Json | undefined {
  let isMissing = false;
  const result = withReferences(value ?? null, (ref) => {
    try {
      return resolve(ref);
    } catch (error) {
      // A missing value is not an error here. All other errors are, such as a value that is too large.
      // guard: when-too-large
      if (!(error instanceof MissingReference)) throw error;
      isMissing = true;
      return null;
    }
  });
  return isMissing ? undefined : result;
}

function isTrue(value: Json | undefined): boolean {
  const number = numberText(value);
  if (number !== undefined) return decimalText(number) !== "0";
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

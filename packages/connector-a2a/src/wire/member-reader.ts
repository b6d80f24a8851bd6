import type { JsonObject } from '@signalbox/http-kit'

import { isObject, UntranslatableError } from './json.ts'

/** The most characters of an invalid value that an error shows. */
const MAX_SHOWN = 64

/**
 * Reads the members of a JSON object by type. `null` counts as absent. In optional members an empty string or list
 * counts as absent too, because Protocol Buffers does not distinguish them.
 *
 * All methods throw an {@link UntranslatableError} that names the member if a value has the wrong type.
 */
export class MemberReader {
  readonly value: JsonObject
  readonly path: string

  constructor(value: unknown, path: string) {
    if (!isObject(value)) throw wrong(path, value, 'an object')
    this.value = value
    this.path = path
  }

  has(name: string): boolean {
    return this.#get(name) !== undefined
  }

  /** Returns a string that may be empty. */
  text(name: string): string | undefined {
    const value = this.#get(name)
    if (value === undefined || typeof value === 'string') return value
    throw this.invalid(name, 'a string')
  }

  string(name: string): string | undefined {
    return this.text(name) || undefined
  }

  requiredString(name: string): string {
    const value = this.string(name)
    if (value === undefined) throw this.invalid(name, 'a string that is not empty')
    return value
  }

  boolean(name: string): boolean | undefined {
    const value = this.#get(name)
    if (value === undefined || typeof value === 'boolean') return value
    throw this.invalid(name, 'true or false')
  }

  integer(name: string): number | undefined {
    const value = this.#get(name)
    if (value === undefined) return undefined
    const number = JSON.isRawJSON(value) ? Number(value.rawJSON) : value
    if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw this.invalid(name, 'an integer')
    return number
  }

  object(name: string): JsonObject | undefined {
    const value = this.#get(name)
    if (value === undefined || isObject(value)) return value
    throw this.invalid(name, 'an object')
  }

  /** Returns a reader of the object in a member. */
  child(name: string): MemberReader | undefined {
    const value = this.object(name)
    return value === undefined ? undefined : new MemberReader(value, `${this.path}.${name}`)
  }

  requiredChild(name: string): MemberReader {
    return new MemberReader(this.#get(name), `${this.path}.${name}`)
  }

  strings(name: string): readonly string[] | undefined {
    const value = this.#get(name)
    if (value === undefined) return undefined
    if (!isStrings(value)) throw this.invalid(name, 'an array of strings')
    return value.length === 0 ? undefined : value
  }

  /** Returns the translated objects of an array. */
  list(name: string, translate: (element: MemberReader) => JsonObject): JsonObject[] | undefined {
    if (!this.has(name)) return undefined
    const list = this.requiredList(name, translate)
    return list.length === 0 ? undefined : list
  }

  /** Returns the translated objects of an array that may be empty. */
  requiredList(name: string, translate: (element: MemberReader) => JsonObject): JsonObject[] {
    return translateList(this.#get(name), `${this.path}.${name}`, translate)
  }

  /** Returns the error for a member with an invalid value. */
  invalid(name: string, allowed: string): UntranslatableError {
    return wrong(`${this.path}.${name}`, this.#get(name), allowed)
  }

  /** Returns the error for an object without the members it needs. */
  invalidSelf(allowed: string): UntranslatableError {
    return wrong(this.path, this.value, allowed)
  }

  #get(name: string): unknown {
    return memberOf(this.value, name) ?? undefined
  }
}

/** The names that {@link protoName} has returned. All names are the code's own. */
const PROTO_NAMES = new Map<string, string>()

/** Returns the name that Protocol Buffers has for a member of JSON: `task_id` for `taskId`. */
export function protoName(name: string): string {
  let known = PROTO_NAMES.get(name)
  if (known === undefined) {
    known = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    PROTO_NAMES.set(name, known)
  }
  return known
}

/**
 * Returns a member by its name in JSON or in Protocol Buffers. Every reader of A2A 1.0 takes both, and so does the SDK
 * for Python of 0.3.
 */
export function memberOf(value: JsonObject, name: string): unknown {
  return value[name] ?? value[protoName(name)]
}

/**
 * Translates the objects of an array.
 * @throws UntranslatableError if the value is not an array of objects
 */
export function translateList(
  value: unknown,
  path: string,
  translate: (element: MemberReader) => JsonObject,
): JsonObject[] {
  if (!Array.isArray(value)) throw wrong(path, value, 'an array')
  return value.map((element, index) => translate(new MemberReader(element, `${path}[${index}]`)))
}

function wrong(path: string, value: unknown, allowed: string): UntranslatableError {
  return new UntranslatableError(`${path} is ${describe(value)}; it must be ${allowed}`)
}

function describe(value: unknown): string {
  if (value === undefined || value === null) return 'missing'
  if (Array.isArray(value)) return 'an array'
  if (isObject(value)) return 'an object'
  return JSON.stringify(typeof value === 'string' ? value.slice(0, MAX_SHOWN) : value).slice(0, MAX_SHOWN + 2)
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((element) => typeof element === 'string')
}

import { Buffer, isUtf8 } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { parseEscapedKeys, shownText } from '@signalbox/broker-core/internal'

import { RefusedError, JSON_RPC_CODES, JsonRpcError } from '../errors.ts'
import type { BodyBudget } from '../surface/body.ts'
import { allSteps } from '../surface/fair-turns.ts'
import type { Steps } from '../surface/fair-turns.ts'
import { countKeys, isJsonObject, limitText, readJson, repeatedKey, scanLimits } from './json.ts'
import type { MemberBytes } from './check-json.ts'
import type { JsonObject } from './json.ts'
import type { CutBody } from './long-body.ts'
import { cutBody, restoreBody } from './long-body.ts'
import { scanJsonInSteps } from './scan.ts'
import type { MemberSink, Scan } from './scan.ts'

/** A message with a method and an id. */
export interface JsonRpcRequest {
  readonly kind: 'request'
  /** The id's source text. It is copied into the answer, so that a large number is echoed exactly. */
  readonly id: string
  readonly method: string
  readonly params: JsonObject | undefined
  /** The source text of `params`. Parsing would change large numbers and the order of keys. */
  readonly paramsText: string | undefined
  /** The source text of the member whose content is free, if the limits name one. @default none */
  readonly freeFormText?: string | undefined
}

/** A message with a method and without an id. */
export interface JsonRpcNotification {
  readonly kind: 'notification'
  readonly method: string
  readonly params: JsonObject | undefined
  readonly paramsText: string | undefined
}

/** A message with a result or an error. */
export interface JsonRpcResponse {
  readonly kind: 'response'
  /** The id's source text; `null` is allowed in a response that carries an error. */
  readonly id: string
  /** The source text of `result`; `undefined` in a response that carries an error. */
  readonly resultText: string | undefined
  readonly errorText: string | undefined
}

/** A valid JSON-RPC 2.0 message. */
export type JsonRpcMessage = JsonRpcRequest | JsonRpcNotification | JsonRpcResponse

/** Limits of {@link parseJsonRpc}. */
export interface JsonRpcLimits {
  /** Containers within containers. @default 128 */
  readonly maxDepth?: number
  /** Keys of all objects together; 0 is no limit. @default 0 */
  readonly maxKeys?: number
  /** The keys that lead to the free-form member. @default everything is free */
  readonly freeForm?: readonly string[]
  /**
   * Rejects a key that appears twice in any object of the message. Without it, only the envelope is checked.
   * @default false
   */
  readonly uniqueKeys?: boolean
}

/** Counts the memory of parsed values, where they take more than 64 KiB. */
type ValueBudget = Pick<BodyBudget, 'charge'>

/** Limits of {@link scanJsonRpc}. */
interface ScanOptions extends JsonRpcLimits {
  /** Cuts a long text out of `params.arguments.body`: see {@link bodyOf}. @default false */
  readonly longBody?: boolean
}

/** Values that need less memory than this are not counted, in bytes. */
const FREE_VALUE_BYTES = 65_536

/**
 * Reads one JSON-RPC 2.0 message from the bytes of a request body or of an agent's response, at once: for a small one,
 * steps would cost more than they divide.
 *
 * @param budget Counts the memory of the values. @default the memory is not counted
 * @throws JsonRpcError -32700 for bytes that are not UTF-8 or not JSON; -32600 for a batch, an invalid envelope, or
 * JSON over the limits; -32602 if `params` is not an object. The error has the id, if the id could be read.
 * @throws RefusedError when the budget refuses the values
 */
export function parseJsonRpc(body: Uint8Array, limits: JsonRpcLimits = {}, budget?: ValueBudget): JsonRpcMessage {
  return allSteps(scanJsonRpc(body, limits, budget)).parseNow()
}

/** Checks a message's text as {@link parseJsonRpc}, and leaves the dear part, building its values, to the caller. */
export function* scanJsonRpc(body: Uint8Array, limits: ScanOptions = {}, budget?: ValueBudget): Steps<ScannedMessage> {
  const cut = limits.longBody === true ? yield* cutBody(asBuffer(body)) : undefined
  const text = decode(cut?.rest ?? body)
  const bounds = scanLimits(limits, limits.maxKeys ?? 0)
  const envelope = new JsonRpcEnvelope(text)
  const scan = yield* scanJsonInSteps(text, bounds, envelope)
  const { exceeded } = scan
  if (exceeded !== undefined) throw invalid(`the body is ${limitText(exceeded, bounds)}`, envelope.readableId())
  return new ScannedMessage(text, { limits, budget, whole: cut && { body, cut } }, envelope, scan)
}

/** The bytes of a message, and how to read them. */
interface MessageSource {
  readonly limits: JsonRpcLimits
  readonly budget: ValueBudget | undefined
  /** The body, and the long text that was cut out of it. @default nothing was cut out */
  readonly whole: { readonly body: Uint8Array; readonly cut: CutBody } | undefined
}

/**
 * A message whose text is within the limits, and whose values are not built yet.
 *
 * A class, not an object with a generator as its method: V8 makes a hidden class for each generator function that is
 * called, in the old generation. There it would keep the text in memory until the next full collection, and every
 * scavenge would copy it.
 */
export class ScannedMessage {
  /** The id's source text; absent if it cannot be read. */
  readonly id: string | undefined
  /** The source text of `method`, not checked. */
  readonly methodText: string | undefined
  /** The source text of `params`, not checked. */
  readonly paramsText: string | undefined
  readonly #text: string
  readonly #source: MessageSource
  readonly #envelope: JsonRpcEnvelope
  readonly #scan: Scan

  constructor(text: string, source: MessageSource, envelope: JsonRpcEnvelope, scan: Scan) {
    this.id = envelope.readableId()
    this.methodText = envelope.methodText
    this.paramsText = envelope.paramsText
    this.#text = text
    this.#source = source
    this.#envelope = envelope
    this.#scan = scan
  }

  /** Builds the values, and then checks the message. @throws as {@link parseJsonRpc} */
  *parse(): Steps<JsonRpcMessage> {
    const { limits, budget, whole } = this.#source
    if (whole === undefined) return yield* this.#inSteps()
    const { body, cut } = whole
    try {
      const message = yield* this.#inSteps()
      if (message.kind === 'request' && restoreBody(message.params, cut)) return message
    } catch (error) {
      if (!(error instanceof JsonRpcError)) throw error
    }
    // The text had another place, or the JSON has faults, which the whole JSON shows.
    const scanned = yield* scanJsonRpc(body, { ...limits, longBody: false }, budget)
    return yield* scanned.parse()
  }

  /** Does the same as {@link parse} at once. */
  parseNow(): JsonRpcMessage {
    if (this.#source.whole !== undefined) return allSteps(this.parse())
    if (this.#scan.escapedKeys) return allSteps(this.#inSteps())
    return this.#withFreeForm(this.#checked(this.#built()))
  }

  *#inSteps(): Steps<JsonRpcMessage> {
    const value = this.#scan.escapedKeys ? yield* this.#builtInSteps() : this.#built()
    yield
    const message = this.#checked(value)
    yield
    return this.#withFreeForm(message)
  }

  #built(): unknown {
    this.#charge()
    try {
      return JSON.parse(this.#text)
    } catch {
      throw notJson()
    }
  }

  *#builtInSteps(): Steps<unknown> {
    this.#charge()
    try {
      return yield* parseEscapedKeys(this.#text)
    } catch {
      throw notJson()
    }
  }

  #charge(): void {
    const { valueBytes } = this.#scan
    const refusal = valueBytes > FREE_VALUE_BYTES ? this.#source.budget?.charge(valueBytes) : undefined
    if (refusal !== undefined) throw new RefusedError(refusal)
  }

  #checked(value: unknown): JsonRpcMessage {
    if (Array.isArray(value)) throw invalid('batches are not supported, send one message for each HTTP request')
    if (typeof value !== 'object' || value === null) throw invalid('the body must be a JSON object')
    const message = this.#envelope.message(value)
    if (this.#source.limits.uniqueKeys === true && countKeys(value) !== this.#scan.keys) {
      throw invalid(`the key ${shownText(repeatedKey(this.#text) ?? '')} appears twice in one object`, this.id)
    }
    return message
  }

  #withFreeForm(message: JsonRpcMessage): JsonRpcMessage {
    const { freeForm } = this.#scan
    if (message.kind !== 'request' || freeForm === undefined) return message
    return { ...message, freeFormText: this.#text.slice(...freeForm) }
  }
}

/** The most characters of `"2.0"` as JSON, in which each character may be an escape. */
const MAX_VERSION_CHARACTERS = 20

/** Returns `true` for the members of a JSON-RPC 2.0 message. */
export function isJsonRpc(members: MemberBytes): boolean {
  const version = members.get('jsonrpc')
  if (version === undefined || version.byteLength > MAX_VERSION_CHARACTERS) return false
  return readJson(decodeText(version) ?? '')?.value === '2.0'
}

/** The parts of a refused request that its answer depends on. */
export interface RequestHead {
  /** The id's source text; absent if it cannot be read. */
  readonly id?: string | undefined
  /** Absent if the body is not a valid request. */
  readonly request?: JsonRpcRequest
}

/** Reads a body whose request is refused for another reason, such as failed authentication. */
export function readRequestHead(body: Uint8Array): RequestHead {
  try {
    const message = parseJsonRpc(body)
    return message.kind === 'request' ? { id: message.id, request: message } : {}
  } catch (error) {
    return error instanceof JsonRpcError ? { id: error.id } : {}
  }
}

/** Returns the id's source text as {@link readRequestHead} reads it; `undefined` if the id cannot be read. */
export function readRequestId(body: Uint8Array): string | undefined {
  return readRequestHead(body).id
}

function asBuffer(body: Uint8Array): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

function decode(body: Uint8Array): string {
  const text = asBuffer(body).toString('utf8')
  // Decoding replaces invalid bytes with U+FFFD. A text without U+FFFD is therefore valid.
  if (text.includes('\ufffd') && !isUtf8(body)) {
    throw new JsonRpcError(JSON_RPC_CODES.PARSE_ERROR, 'parse error: the body is not valid UTF-8')
  }
  return text
}

function notJson(): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.PARSE_ERROR, 'parse error: the body is not valid JSON')
}

function invalid(reason: string, id?: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_REQUEST, `invalid request: ${reason}`, { id })
}

/** Collects the source texts of the envelope's members and the repeated keys that a scan reports. */
class JsonRpcEnvelope implements MemberSink {
  readonly #text: string
  #jsonrpc: string | undefined
  #id: string | undefined
  #method: string | undefined
  #params: string | undefined
  #result: string | undefined
  #error: string | undefined
  #duplicate: string | undefined

  constructor(text: string) {
    this.#text = text
  }

  member(key: string, start: number, end: number): void {
    switch (key) {
      case 'jsonrpc':
        if (this.#jsonrpc !== undefined) this.#duplicate ??= key
        this.#jsonrpc = this.#text.slice(start, end)
        break
      case 'id':
        if (this.#id !== undefined) this.#duplicate = key
        this.#id = this.#text.slice(start, end)
        break
      case 'method':
        if (this.#method !== undefined) this.#duplicate ??= key
        this.#method = this.#text.slice(start, end)
        break
      case 'params':
        if (this.#params !== undefined) this.#duplicate ??= key
        this.#params = this.#text.slice(start, end)
        break
      case 'result':
        if (this.#result !== undefined) this.#duplicate ??= key
        this.#result = this.#text.slice(start, end)
        break
      case 'error':
        if (this.#error !== undefined) this.#duplicate ??= key
        this.#error = this.#text.slice(start, end)
        break
    }
  }

  get methodText(): string | undefined {
    return this.#method
  }

  get paramsText(): string | undefined {
    return this.#params
  }

  /** Returns the id's source text if the envelope has one valid id. */
  readableId(): string | undefined {
    return this.#id !== undefined && this.#duplicate !== 'id' && isIdText(this.#id) ? this.#id : undefined
  }

  message(envelope: { jsonrpc?: unknown; method?: unknown; params?: unknown }): JsonRpcMessage {
    const id = this.#id
    if (this.#duplicate !== undefined) {
      throw invalid(`the key ${JSON.stringify(this.#duplicate)} appears twice`, this.readableId())
    }
    const isResponse = this.#method === undefined && (this.#result !== undefined || this.#error !== undefined)
    if (id !== undefined && !isIdText(id) && !(isResponse && id === 'null' && this.#error !== undefined)) {
      throw invalid('id must be a string, or an integer written without fraction or exponent')
    }
    if (envelope.jsonrpc !== '2.0') throw invalid('jsonrpc must be "2.0"', id)
    if (isResponse) return this.#response(id)
    const { method, params } = envelope
    if (typeof method !== 'string' || method === '') throw invalid('method must be a non-empty string', id)
    if (params !== undefined && !isJsonObject(params)) {
      throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, 'invalid params: params must be an object', { id })
    }
    const paramsText = this.#params
    return id === undefined
      ? { kind: 'notification', method, params, paramsText }
      : { kind: 'request', id, method, params, paramsText }
  }

  #response(id: string | undefined): JsonRpcResponse {
    if (id === undefined) throw invalid('a response must have an id')
    if (this.#result !== undefined && this.#error !== undefined) {
      throw invalid('a response must have a result or an error, not both', id)
    }
    return { kind: 'response', id, resultText: this.#result, errorText: this.#error }
  }
}

/**
 * Returns a JSON-RPC success as text. `id` is the source text of the request's id and `result` is JSON text; both are
 * copied unchanged.
 */
export function successText(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`
}

/** Returns a JSON-RPC failure as text. `id` is the source text of the request's id; `undefined` becomes `null`. */
export function errorText(id: string | undefined, code: number, message: string, data?: unknown): string {
  const rest = data === undefined ? '' : `,"data":${JSON.stringify(data) ?? 'null'}`
  return `{"jsonrpc":"2.0","id":${id ?? 'null'},"error":{"code":${code},"message":${JSON.stringify(message)}${rest}}}`
}

/** Returns a JSON-RPC failure as {@link errorText} does. `id` defaults to the id of the error. */
export function jsonRpcErrorText(error: JsonRpcError, id: string | undefined = error.id): string {
  return errorText(id, error.code, error.message, error.data)
}

/**
 * Returns the error that answers an internal failure. The client sees "internal error" only; `cause` is for the log.
 */
export function internalError(cause: unknown, id?: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, 'internal error', { id, cause })
}

const INTEGER = /^-?(?:0|[1-9][0-9]*)$/

/**
 * Returns `true` if the source text of a JSON value is a request id: a string, or an integer of any size. An integer
 * written with a fraction or an exponent is not one, because two readers may print it differently.
 */
export function isIdText(text: string): boolean {
  return text.startsWith('"') || INTEGER.test(text)
}

/** Returns one text for all spellings of the same id, for use as a key. */
export function idKey(idText: string): string {
  return idText.includes('\\') ? JSON.stringify(JSON.parse(idText)) : idText
}

/** Returns an id without the quotes of JSON. */
export function idText(id: string): string {
  return id.startsWith('"') ? id.slice(1, -1) : id
}

/** Returns true for the code of a fault of the server (JSON-RPC 2.0, section 5.1). */
export function isServerError(code: string): boolean {
  const number = Number(code)
  return number === JSON_RPC_CODES.INTERNAL_ERROR || (number <= -32_000 && number >= -32_099)
}

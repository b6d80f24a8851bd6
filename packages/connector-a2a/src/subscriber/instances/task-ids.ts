import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit/internal'

import { EventReader } from '../../stream/event-reader.ts'
import { fromBytes } from '../../stream/native-events.ts'
import { findMethod, memberOf } from '../../wire/index.ts'
import { soughtTexts, mentions } from '../json-bodies.ts'

/** A request that continues a task or a stream. */
export interface FollowedTask {
  readonly id: string
  /**
   * True if an instance that does not know the task says so, and does nothing. The instances can then be asked in turn.
   */
  readonly searchable: boolean
}

/** Every request that continues a task has one of these texts. Others are not parsed. */
const MENTIONS = soughtTexts(['taskId', 'task_id', 'tasks/', 'Task', 'stream_cancel'])

/** Returns the task that a request continues; undefined for a request that begins something. */
export function followedTask(body: Uint8Array): FollowedTask | undefined {
  if (!mentions(body, MENTIONS)) return undefined
  const request = readJson(decodeText(body) ?? '')?.value
  if (!isJsonObject(request) || typeof request['method'] !== 'string') return undefined
  const { method, params } = request
  if (!isJsonObject(params)) return undefined
  if (method === 'stream_cancel') return named(params['stream_id'], false)
  const message = isJsonObject(params['message']) ? memberOf(params['message'], 'taskId') : undefined
  const ofTask = method.startsWith('tasks/') || isOfTask(findMethod(method)?.method.operation)
  return named(
    message ?? memberOf(params, 'taskId') ?? (ofTask ? params['id'] : undefined),
    findMethod(method) !== undefined,
  )
}

/** Every message of a context has one of these texts. Others are not parsed. */
const CONTEXT_MENTIONS = soughtTexts(['contextId', 'context_id'])

/** Returns the context of the message in a request. */
export function messageContext(body: Uint8Array): string | undefined {
  if (!mentions(body, CONTEXT_MENTIONS)) return undefined
  const request = readJson(decodeText(body) ?? '')?.value
  const params = isJsonObject(request) ? request['params'] : undefined
  if (!isJsonObject(params) || !isJsonObject(params['message'])) return undefined
  const context = memberOf(params['message'], 'contextId') ?? memberOf(params, 'contextId')
  return typeof context === 'string' && context !== '' ? context : undefined
}

/** Returns true for an operation whose params have the id of a task as `id`. */
export function isOfTask(operation: string | undefined): boolean {
  return operation === 'get' || operation === 'cancel' || operation === 'resubscribe'
}

function named(id: unknown, searchable: boolean): FollowedTask | undefined {
  return typeof id === 'string' && id !== '' ? { id, searchable } : undefined
}

/** Larger responses are not parsed for the task that they began. */
const MAX_RESPONSE_BYTES = 1024 * 1024

/** Every response that names a task has one of these texts. Others are not parsed. */
const RESPONSE_MENTIONS = soughtTexts(['"taskId"', '"task_id"', '"task"', '"status"', '"contextId"', '"context_id"'])

/** A stream names its task in its first events. */
const MAX_STREAM_BYTES = 65_536

/** The ids of the task and the context in a response of the agent. */
export interface StartedTask {
  readonly taskId?: string | undefined
  readonly contextId?: string | undefined
}

const NOTHING: StartedTask = {}

/** Returns the task that a response names, in any dialect; nothing for a response that is larger. */
export function startedTask(body: Uint8Array, maxBytes = MAX_RESPONSE_BYTES): StartedTask {
  if (body.byteLength > maxBytes) return NOTHING
  return mentions(body, RESPONSE_MENTIONS)
    ? taskIn(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
    : NOTHING
}

/** Finds the task in the first events of a stream. */
export class StreamedTask {
  readonly #reader: EventReader
  readonly #maxBytes: number
  #bytes = 0
  #done = false

  /**
   * @param found Called at most once
   * @param maxBytes The bytes of the stream after which the search ends
   */
  constructor(found: (started: StartedTask & { readonly taskId: string }) => void, maxBytes = MAX_STREAM_BYTES) {
    this.#maxBytes = maxBytes
    this.#reader = new EventReader(maxBytes, ({ data }) => {
      const { taskId, contextId } = this.#done ? NOTHING : taskIn(fromBytes(data))
      if (taskId === undefined) return
      this.#done = true
      found({ taskId, contextId })
    })
  }

  /** Reads a chunk of the stream. Does nothing after the task was found. */
  read(chunk: Buffer): void {
    if (this.#done) return
    this.#bytes += chunk.byteLength
    if (!this.#reader.feed(chunk) || this.#bytes > this.#maxBytes) this.#done = true
  }
}

function taskIn(text: string): StartedTask {
  const value = readJson(text)?.value
  if (!isJsonObject(value)) return NOTHING
  const outcome = value['result'] ?? value['payload'] ?? value
  if (!isJsonObject(outcome)) return NOTHING
  // A task itself, with `kind` in A2A 0.3 and without it before.
  if (outcome['kind'] === 'task' || isJsonObject(outcome['status'])) {
    return { taskId: textIn(outcome, 'taskId') ?? textIn(outcome, 'id'), contextId: textIn(outcome, 'contextId') }
  }
  for (const member of ['task', 'statusUpdate', 'artifactUpdate', 'message']) {
    const inner = memberOf(outcome, member)
    if (!isJsonObject(inner)) continue
    return { taskId: textIn(inner, member === 'task' ? 'id' : 'taskId'), contextId: textIn(inner, 'contextId') }
  }
  return { taskId: textIn(outcome, 'taskId'), contextId: textIn(outcome, 'contextId') }
}

function textIn(object: { readonly [member: string]: unknown }, member: string): string | undefined {
  const value = memberOf(object, member)
  return typeof value === 'string' && value !== '' ? value : undefined
}

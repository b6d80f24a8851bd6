import { Buffer } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import { isJsonObject, readJson } from '@signalbox/http-kit'
import type { AgentReply } from '../../requests/agent-reply.ts'

import { A2A_CODES } from '../../native/error-info.ts'
import { findMethod, memberOf } from '../../wire/index.ts'

/** A request that continues a task or a stream. */
export interface FollowedTask {
  readonly id: string
  /**
   * True if an instance that does not know the task says so, and does nothing. The instances can then be asked in turn.
   */
  readonly searchable: boolean
}

/** Every request that continues a task has one of these texts. Others are not parsed. */
const MENTIONS = ['taskId', 'task_id', 'tasks/', 'Task', 'stream_cancel'].map((text) => Buffer.from(text))

/** The code of TaskNotFoundError in A2A 1.0 and 0.3. */
const TASK_NOT_FOUND = A2A_CODES.TASK_NOT_FOUND

/** An error has a short text. Larger responses are not parsed. */
const MAX_ERROR_BYTES = 16_384

/** Returns the task that a request continues; undefined for a request that begins something. */
export function followedTask(body: Uint8Array): FollowedTask | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!MENTIONS.some((text) => bytes.includes(text))) return undefined
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
const CONTEXT_MENTIONS = ['contextId', 'context_id'].map((text) => Buffer.from(text))

/** Returns the context of the message in a request. */
export function messageContext(body: Uint8Array): string | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!CONTEXT_MENTIONS.some((text) => bytes.includes(text))) return undefined
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

/** Returns true if an agent answered that it does not know the task. */
export function isUnknownTask({ body, failure }: AgentReply): boolean {
  if (failure !== undefined || body.byteLength > MAX_ERROR_BYTES) return false
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!bytes.includes(String(TASK_NOT_FOUND))) return false
  const response = readJson(decodeText(body) ?? '')?.value
  const error = isJsonObject(response) ? response['error'] : undefined
  return isJsonObject(error) && error['code'] === TASK_NOT_FOUND
}

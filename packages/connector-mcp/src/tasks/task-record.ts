import { decodeText } from '@signalbox/broker-core'
import type { JsonObject } from '@signalbox/http-kit'
import { compileLater } from '@signalbox/http-kit/internal'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import type { TaskEntry } from './task-store.ts'

const object = Type.Unsafe<JsonObject>({ type: 'object' })
const objects = Type.Record(Type.String(), object)

const TaskRecordSchema = Type.Object({
  /** The ClientID of the caller that created the task. Only this caller may use it. */
  principal: Type.String(),
  /** The account that the task counts against. */
  account: Type.String(),
  /** The name of the tool. */
  tool: Type.String(),
  status: Type.Enum(['working', 'input_required', 'completed', 'failed', 'cancelled']),
  statusMessage: Type.Optional(Type.String()),
  /** Times in ms since the epoch. */
  createdMs: Type.Number(),
  updatedMs: Type.Number(),
  /** The time after which the task is removed, unless it is still `working`. */
  expiresMs: Type.Number(),
  /** The node that runs the call. Present while the status is `working`. */
  node: Type.Optional(Type.String()),
  /** `true` if the client accepts questions for its user. */
  asks: Type.Boolean(),
  /** The number of times that the task has asked for input. */
  rounds: Type.Integer({ minimum: 0 }),
  /** The tool's own notes, with which each node can continue or cancel the call. */
  state: object,
  /** The open requests to the client, by key. Present while the status is `input_required`. */
  requests: Type.Optional(objects),
  /** The client's answers to other requests of the same round. */
  responses: Type.Optional(objects),
  /** Present with the status `failed`. */
  error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String() })),
})

/** A task as the store keeps it, without its result. */
export type TaskRecord = Readonly<Static<typeof TaskRecordSchema>>

/** The stored result of a task without a result. */
export const NO_RESULT = new Uint8Array(0)

/** A stored task. */
export interface StoredTask {
  readonly id: string
  readonly sequence: number
  readonly record: TaskRecord
  /** The result as JSON text, with the status `completed`. */
  readonly result: Uint8Array
}

const schema = compileLater(TaskRecordSchema)

/** Returns the `head` of a task's entry. */
export function encodeRecord(record: TaskRecord): string {
  return JSON.stringify(record)
}

/**
 * Reads the entry of a task.
 * @returns `undefined` if the task was removed
 * @throws TypeError for an entry that {@link encodeRecord} did not create
 */
export function readTask({ key, sequence, head, body }: TaskEntry): StoredTask | undefined {
  if (head === undefined) return undefined
  let record: unknown
  try {
    record = JSON.parse(head)
  } catch {
    throw new TypeError(`entry ${sequence} of the tasks is not JSON`)
  }
  if (!schema.Check(record)) throw new TypeError(`entry ${sequence} of the tasks is not a task`)
  return { id: key, sequence, record, result: body }
}

/** Returns `true` if the status of a task cannot change any more. */
export function isOver({ status }: TaskRecord): boolean {
  return status !== 'working' && status !== 'input_required'
}

/** Returns `true` if a task is past its time. A call that still runs keeps its task. */
export function isExpired({ status, expiresMs }: TaskRecord, now: number): boolean {
  return status !== 'working' && expiresMs <= now
}

/**
 * Returns the next state of a task whose call does not run any more. A task is kept for its whole time after each
 * change.
 */
export function restingRecord(record: TaskRecord, change: Partial<TaskRecord>, ttlMs: number): TaskRecord {
  const now = Date.now()
  const { principal, account, tool, createdMs, expiresMs, asks, rounds, state } = record
  return {
    principal,
    account,
    tool,
    status: record.status,
    createdMs,
    asks,
    rounds,
    state,
    updatedMs: Math.max(now, record.updatedMs),
    expiresMs: Math.max(expiresMs, now + ttlMs),
    ...change,
  }
}

/** Returns the members of a `Task` as JSON text without the braces: those of the answer that creates a task. */
export function taskMembers(id: string, record: TaskRecord, pollIntervalMs: number): string {
  const { status, statusMessage, createdMs, updatedMs, expiresMs } = record
  const members = {
    taskId: id,
    status,
    statusMessage,
    createdAt: new Date(createdMs).toISOString(),
    lastUpdatedAt: new Date(updatedMs).toISOString(),
    ttlMs: Math.max(1, Math.round(expiresMs - createdMs)),
    pollIntervalMs,
  }
  return JSON.stringify(members).slice(1, -1)
}

/** Returns the members of a `DetailedTask`, which has the open requests, the result or the error. */
export function detailedMembers({ id, record, result }: StoredTask, pollIntervalMs: number): string {
  const task = taskMembers(id, record, pollIntervalMs)
  switch (record.status) {
    case 'input_required':
      return `${task},"inputRequests":${JSON.stringify(record.requests ?? {})}`
    case 'completed':
      return `${task},"result":${callResult(decodeText(result) ?? '{}')}`
    case 'failed':
      return `${task},"error":${JSON.stringify(record.error ?? {})}`
    default:
      return task
  }
}

/** Returns a stored result in the form of revision 2026-07-28. The text is copied, so that large numbers stay exact. */
function callResult(stored: string): string {
  return `{"resultType":"complete"${stored === '{}' ? '' : ','}${stored.slice(1)}`
}

import { decodeText } from '@signalbox/broker-core'

import type { StoredTask, TaskRecord } from './task-record.ts'

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
      // The text is copied, so that large numbers in a result stay exact.
      return `${task},"result":${decodeText(result) ?? '{}'}`
    case 'failed':
      return `${task},"error":${JSON.stringify(record.error ?? {})}`
    default:
      return task
  }
}

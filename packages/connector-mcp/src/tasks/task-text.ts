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

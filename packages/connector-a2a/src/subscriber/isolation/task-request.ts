import { decodeText } from '@signalbox/broker-core'
import { isJsonObject } from '@signalbox/http-kit'

import type { Operation } from '../../wire/index.ts'
import { findMethod } from '../../wire/index.ts'
import { isOfTask } from '../instances/followed-task.ts'

/** A request, by its effect on tasks. */
export interface TaskRequest {
  /** The tasks that the request names. */
  readonly taskIds: readonly string[]
  /** `begin`: may begin a task · `list`: lists tasks · `read`: reads or cancels a task · `other`. */
  readonly kind: 'begin' | 'list' | 'read' | 'other'
}

const READING: ReadonlySet<Operation | undefined> = new Set<Operation>([
  'get',
  'cancel',
  'resubscribe',
  'push-get',
  'push-list',
])

/** The names of A2A 0.2, and of drafts of later versions. */
const BEGINNING: ReadonlySet<string> = new Set(['tasks/send', 'tasks/sendSubscribe'])
const LIST = 'tasks/list'

/**
 * Reads a request as leniently as any agent does: some readers ignore the case of names, some take the names of Protocol
 * Buffers, and of two members with one meaning they take either. So every member that may name a task
 * counts.
 */
export function taskRequest(body: Uint8Array): TaskRequest {
  const request = parse(body)
  const methods = members(request, 'method').filter((value) => typeof value === 'string')
  const ofTask = methods.some((method) => method.startsWith('tasks/') || isOfTask(operationOf(method)))
  const params = members(request, 'params')
  const messages = params.flatMap((one) => members(one, 'message'))
  const taskIds = [
    ...[...params, ...messages].flatMap((one) => members(one, 'taskId')),
    ...(ofTask ? params.flatMap((one) => members(one, 'id')) : []),
    ...messages.flatMap((message) => members(message, 'referenceTaskIds')).flat(),
  ]
  return { taskIds: [...new Set(taskIds.filter((id) => typeof id === 'string'))], kind: kindOf(methods[0] ?? '') }
}

function kindOf(method: string): TaskRequest['kind'] {
  const operation = operationOf(method)
  if (operation === 'list' || method === LIST) return 'list'
  if (operation === 'send' || operation === 'stream' || BEGINNING.has(method)) return 'begin'
  return READING.has(operation) ? 'read' : 'other'
}

function operationOf(method: string): Operation | undefined {
  return findMethod(method)?.method.operation
}

/** Returns the values of the members whose names mean this one. */
function members(value: unknown, name: string): unknown[] {
  if (!isJsonObject(value)) return []
  const wanted = name.toLowerCase()
  return Object.keys(value)
    .filter((key) => key.replaceAll('_', '').toLowerCase() === wanted)
    .map((key) => value[key])
}

/** The gateway has checked the depth of the body. */
function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(decodeText(body) ?? '')
  } catch {
    return undefined
  }
}

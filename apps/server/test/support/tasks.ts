import { expect } from 'vitest'

import { PATIENT } from './nodes.ts'

/** A task as `/mcp` describes it. */
export interface Task {
  readonly resultType: string
  readonly taskId: string
  readonly status: string
  readonly inputRequests?: Record<string, { readonly params: { readonly message: string } }>
  readonly result?: { readonly content: { readonly text: string }[]; readonly isError: boolean }
  readonly error?: { readonly code: number; readonly message: string }
}

interface Answer {
  readonly result?: Task
  readonly error?: { readonly code: number; readonly message: string }
}

interface Params {
  readonly name?: string
  readonly taskId?: string
  readonly [member: string]: unknown
}

const VERSION = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientCapabilities': {
    extensions: { 'io.modelcontextprotocol/tasks': {} },
    elicitation: {},
  },
}

/** Sends a request of a client with tasks and forms. */
export async function taskRequest(
  base: string,
  method: string,
  params: Params,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION,
      'mcp-method': method,
      'mcp-name': params.name ?? params.taskId ?? '',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
  })
  return (await response.json()) as Answer
}

/** Calls a tool; resolves with its task. */
export async function startTask(base: string, name: string, args: object): Promise<string> {
  const { result, error } = await taskRequest(base, 'tools/call', { name, arguments: args })
  expect([error, result?.resultType]).toEqual([undefined, 'task'])
  return result?.taskId ?? ''
}

export async function getTask(base: string, taskId: string): Promise<Task> {
  const { result, error } = await taskRequest(base, 'tasks/get', { taskId })
  expect(error).toBeUndefined()
  return result as Task
}

/** Resolves when the task has this status. */
export async function untilTask(base: string, taskId: string, status: string): Promise<Task> {
  let task: Task | undefined
  await expect
    .poll(async () => (task = await getTask(base, taskId)).status, { timeout: 30_000, interval: PATIENT.timeout / 200 })
    .toBe(status)
  return task as unknown as Task
}

/** Answers the only open question of a task. */
export async function answerTask(base: string, task: Task, answer: string): Promise<void> {
  const [key = ''] = Object.keys(task.inputRequests ?? {})
  const inputResponses = { [key]: { action: 'accept', content: { answer } } }
  const { error } = await taskRequest(base, 'tasks/update', { taskId: task.taskId, inputResponses })
  expect(error).toBeUndefined()
}

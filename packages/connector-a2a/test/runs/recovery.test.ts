import { testFolder } from '@signalbox/testkit/test-folder'
import { describe, expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { json, startAgent } from '../agents.ts'
import { openGateway } from '../gateway-host.ts'
import { beginStream, DURABLE, openDurable, registerDurable, send, taskEvent } from './durable-host.ts'

const V10 = { 'a2a-version': '1.0' }

interface Recovering {
  /** The answer to SubscribeToTask. */
  readonly subscribe?: Script
  /** The state of the task for GetTask; undefined: the agent does not know it. */
  readonly state?: () => string | undefined
}

/** An agent that breaks off its stream after two events. */
function breaking({ subscribe, state = () => undefined }: Recovering): Script {
  return (asked, response, request) => {
    const { method } = JSON.parse(asked.body) as { method: string }
    if (method === 'SendStreamingMessage') {
      beginStream(response)
      response.write(taskEvent('t1', { task: 'WORKING' }))
      response.write(taskEvent('t1', { artifact: 'one' }), () => response.destroy())
    } else if (method === 'SubscribeToTask' && subscribe !== undefined) subscribe(asked, response, request)
    else if (method === 'SubscribeToTask') json(response, error(-32004))
    else {
      const now = state()
      json(response, now === undefined ? error(-32001) : result({ id: 't1', contextId: 'c1', status: { state: now } }))
    }
  }
}

function error(code: number): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code, message: 'no' } })
}

function result(value: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, result: value })
}

/** Sends a message, and returns the results of its stream. */
async function resultsOf(script: Script): Promise<readonly Record<string, unknown>[]> {
  const { host } = await openDurable(script)
  const { text } = await host.post(DURABLE, send('go', 'm1', 1, 'SendStreamingMessage'), V10)
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => {
    const response = JSON.parse(data) as { result?: Record<string, unknown> }
    return response.result ?? response
  })
}

describe('streams whose connection to the agent breaks', () => {
  test('recovery - the gateway subscribes to the task, and the first event after the gap is marked', async () => {
    const results = await resultsOf(
      breaking({
        subscribe(_asked, response) {
          beginStream(response)
          response.write(taskEvent('t1', { task: 'WORKING' }))
          response.end(taskEvent('t1', { state: 'COMPLETED' }))
        },
      }),
    )
    expect(results.map((one) => Object.keys(one)[0])).toEqual(['task', 'artifactUpdate', 'task', 'statusUpdate'])
    expect(results[2]).toMatchObject({ task: { metadata: { 'signalbox.gap': { from: 3 } } } })
    expect(results[3]).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
  })

  test('recovery - a subscription that breaks too is made again', async () => {
    let count = 0
    const results = await resultsOf(
      breaking({
        subscribe(_asked, response) {
          beginStream(response)
          response.write(taskEvent('t1', { task: 'WORKING' }))
          if (++count < 3) response.write(taskEvent('t1', { artifact: `part ${count}` }), () => response.destroy())
          else response.end(taskEvent('t1', { state: 'COMPLETED' }))
        },
      }),
    )
    expect(results.map((one) => Object.keys(one)[0])).toEqual([
      'task',
      'artifactUpdate',
      'task',
      'artifactUpdate',
      'task',
      'artifactUpdate',
      'task',
      'statusUpdate',
    ])
  })

  test('recovery - a task that ended meanwhile is read, and its state is the last event', async () => {
    const results = await resultsOf(breaking({ state: () => 'TASK_STATE_COMPLETED' }))
    expect(results.at(-1)).toMatchObject({
      task: { status: { state: 'TASK_STATE_COMPLETED' }, metadata: { 'signalbox.gap': { from: 3 } } },
    })
    expect(results).toHaveLength(3)
  })

  test('recovery - a task that still works is read again until it is over', async () => {
    let reads = 0
    const results = await resultsOf(
      breaking({ state: () => (++reads < 2 ? 'TASK_STATE_WORKING' : 'TASK_STATE_FAILED') }),
    )
    expect(reads).toBe(2)
    expect(results.at(-1)).toMatchObject({ task: { status: { state: 'TASK_STATE_FAILED' } } })
  })

  test('recovery - a task that the agent does not know any more has failed, with the reason', async () => {
    const results = await resultsOf(breaking({}))
    expect(results.at(-1)).toMatchObject({
      statusUpdate: {
        taskId: 't1',
        status: { state: 'TASK_STATE_FAILED' },
        metadata: { 'signalbox.reason': 'AGENT_LOST' },
      },
    })
  })

  test('recovery - a stream that breaks before it names a task ends with the reason', async () => {
    const results = await resultsOf((_asked, response) => {
      beginStream(response).write(': hello\n\n', () => response.destroy())
    })
    expect(results).toMatchObject([{ error: { code: -32603, data: [{ reason: 'AGENT_LOST' }] } }])
  })

  test('recovery - a stream that breaks after its last status is complete', async () => {
    const results = await resultsOf((_asked, response) => {
      beginStream(response).write(taskEvent('t1', { task: 'COMPLETED' }), () => response.destroy())
    })
    expect(results).toHaveLength(1)
  })

  test('recovery - two readers of a stream that was left continue it once', async () => {
    const folder = testFolder()
    const agent = await startAgent((asked, response) => {
      const { method } = JSON.parse(asked.body) as { method: string }
      if (method === 'SendStreamingMessage') beginStream(response).write(taskEvent('t1', { task: 'WORKING' }))
      else if (method === 'SubscribeToTask') {
        beginStream(response)
        response.write(taskEvent('t1', { task: 'WORKING' }))
        setTimeout(() => response.end(taskEvent('t1', { state: 'COMPLETED' })), 1_000)
      }
    })
    const before = await openGateway({ folder, shared: false })
    await registerDurable(before, agent.url)
    const headers = { ...V10, 'content-type': 'application/json' }
    const body = JSON.stringify(send('go', 'm1', 1, 'SendStreamingMessage'))
    const first = await fetch(`${before.base}/a2a/${DURABLE}`, { method: 'POST', headers, body })
    const reader = first.body?.getReader()
    let text = ''
    while (!/^id: .*\n/m.test(text)) {
      text += new TextDecoder().decode((await reader?.read())?.value)
    }
    const [, cursor = ''] = /^id: (.*)$/m.exec(text) ?? []
    await before.close()
    const host = await openGateway({ folder, shared: false })
    const subscribe = { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 't1' } }
    const reads = Array.from({ length: 4 }, () => host.post(DURABLE, subscribe, { ...V10, 'last-event-id': cursor }))
    const texts = await Promise.all(reads.map(async (read) => (await read).text.replaceAll(/^:.*\n\n/gm, '')))
    expect(texts[0]).toContain('TASK_STATE_COMPLETED')
    expect(new Set(texts).size).toBe(1)
    expect(agent.asked.filter(({ body: asked }) => asked.includes('SubscribeToTask'))).toHaveLength(1)
  })
})

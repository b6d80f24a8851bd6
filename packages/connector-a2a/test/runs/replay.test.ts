import type { Authenticator } from '@signalbox/http-kit'
import { describe, expect, test } from 'vitest'

import type { GatewayHost } from '../gateway-host.ts'
import { beginStream, DURABLE, openDurable, send, taskEvent } from './durable-host.ts'

const V10 = { 'a2a-version': '1.0', 'content-type': 'application/json' }

interface Read {
  readonly status: number
  readonly events: readonly string[]
  /** The id of the last event. */
  readonly last: string | undefined
}

/** Reads the events of a stream, without comments, until it ends or until it has had this many. */
async function read(response: Response, most = Infinity): Promise<Read> {
  let text = ''
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  while (eventsIn(text).length < most) {
    const { done, value } = (await reader?.read()) ?? { done: true }
    if (done) break
    text += decoder.decode(value, { stream: true })
  }
  await reader?.cancel()
  const events = eventsIn(text).slice(0, most)
  return { status: response.status, events, last: /^id: (.*)$/m.exec(events.at(-1) ?? '')?.[1] }
}

/** Returns the whole events of a text. */
function eventsIn(text: string): string[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .filter((event) => event.includes('data: '))
}

function stream(host: GatewayHost, messageId: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${host.base}/a2a/${DURABLE}`, {
    method: 'POST',
    headers: { ...V10, ...headers },
    body: JSON.stringify(send('go', messageId, 1, 'SendStreamingMessage')),
  })
}

function subscribe(
  host: GatewayHost,
  taskId: string,
  cursor: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${host.base}/a2a/${DURABLE}`, {
    method: 'POST',
    headers: { ...V10, 'last-event-id': cursor, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: taskId } }),
  })
}

const EVENTS = 200

describe('streams that replay', () => {
  test('replay - cut after every event, and continued by a subscription: each event once, in order, byte for byte', async () => {
    const { host, agent } = await openDurable((_asked, response) => {
      beginStream(response)
      response.write(taskEvent('t1', { task: 'WORKING' }))
      for (let n = 2; n < EVENTS; n++) response.write(taskEvent('t1', { artifact: `${n} ü ` }))
      response.end(taskEvent('t1', { state: 'COMPLETED' }))
    })
    const whole = await read(await stream(host, 'm1'))
    expect(whole.events).toHaveLength(EVENTS)
    const ids = whole.events.map((event) => Number(/^id: .*\.(\d+)$/m.exec(event)?.[1]))
    expect(ids).toEqual(Array.from({ length: EVENTS }, (_, i) => i + 1))
    for (let k = 1; k < EVENTS; k++) {
      const part = await read(await stream(host, 'm1'), k)
      const rest = await read(await subscribe(host, 't1', part.last ?? ''))
      expect([...part.events, ...rest.events]).toEqual(whole.events)
    }
    expect(agent.asked).toHaveLength(1)
  })

  test('replay - a run goes on when its client leaves, and the client reads the rest later', async () => {
    const go = Promise.withResolvers<void>()
    const { host } = await openDurable(async (_asked, response) => {
      beginStream(response)
      response.write(taskEvent('t1', { task: 'WORKING' }))
      await go.promise
      response.end(taskEvent('t1', { state: 'COMPLETED' }))
    })
    const part = await read(await stream(host, 'm1'), 1)
    go.resolve()
    const rest = await read(await subscribe(host, 't1', part.last ?? ''))
    expect(rest.events).toHaveLength(1)
    expect(rest.events[0]).toContain('TASK_STATE_COMPLETED')
  })

  test.each([
    ['that is no id of an event', 'abc', 'it is not the id of an event'],
    ['of no run', '00000000-0000-4000-8000-000000000000.1', 'it names no event of this task'],
  ])('replay - a cursor %s is refused', async (_what, cursor, problem) => {
    const { host } = await openDurable((_asked, response) => response.destroy())
    const response = await subscribe(host, 't1', cursor)
    const { error } = (await response.json()) as {
      error: { code: number; message: string; data: { reason: string }[] }
    }
    expect(error).toMatchObject({ code: -32602, data: [{ reason: 'CURSOR_INVALID' }] })
    expect(error.message).toContain(problem)
  })

  test('replay - a cursor that is ahead, of another task, or of another caller is refused', async () => {
    const authenticator: Authenticator = {
      authenticate: ({ headers: { authorization = '' } }) => ({ clientId: authorization }),
    }
    const { host } = await openDurable(
      (_asked, response) => {
        beginStream(response)
        response.write(taskEvent('t1', { task: 'WORKING' }))
        response.end(taskEvent('t1', { state: 'COMPLETED' }))
      },
      { authenticator },
    )
    const alice = { authorization: 'alice' }
    const { last = '' } = await read(await stream(host, 'm1', alice))
    const [run = ''] = last.split('.')
    for (const [cursor, task, caller, problem] of [
      [`${run}.99`, 't1', 'alice', 'it is ahead of the task'],
      [last, 't2', 'alice', 'it names no event of this task'],
      [last, 't1', 'bob', ''],
    ] as const) {
      const response = await subscribe(host, task, cursor, { authorization: caller })
      const { error } = (await response.json()) as { error: { message: string; data: { reason: string }[] } }
      // A task of another caller is not known at all.
      expect([error.data[0]?.reason, error.message.includes(problem)]).toEqual(['CURSOR_INVALID', true])
    }
    expect((await read(await subscribe(host, 't1', `${run}.1`, alice))).events).toHaveLength(1)
  })
})

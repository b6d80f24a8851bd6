import { encodeText } from '@signalbox/broker-core'
import type { Authenticator } from '@signalbox/http-kit'
import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import { digestOfCall } from '../../src/gateway/repeated-calls.ts'
import { nativeProtocol } from '../../src/native/native-protocol.ts'
import { startAgent } from '../agents.ts'
import { openGateway } from '../gateway-host.ts'
import type { Answer } from '../gateway-host.ts'
import {
  beginStream,
  counting,
  DURABLE,
  openDurable,
  PLAIN,
  registerDurable,
  send,
  send03,
  taskEvent,
} from './durable-host.ts'

const V10 = { 'a2a-version': '1.0' }

function resultOf({ text }: Answer): unknown {
  return (JSON.parse(text) as { result?: unknown }).result
}

function errorOf({ text }: Answer): { code: number; message: string; data?: { reason: string }[] } {
  return (JSON.parse(text) as { error: { code: number; message: string; data?: { reason: string }[] } }).error
}

function textOf(answer: Answer): string {
  const { message } = resultOf(answer) as { message: { parts: { text: string }[] } }
  return message.parts[0]?.text ?? ''
}

const replayed = ({ headers }: Answer) => headers.get('idempotency-replayed')

describe('sends that run once', () => {
  test('once - a durable agent gets a message id once; the second request has the first answer, with its own id', async () => {
    const { host, agent } = await openDurable(counting())
    const first = await host.post(DURABLE, send('hello', 'm1', 1), V10)
    const second = await host.post(DURABLE, send('hello', 'm1', 'two'), V10)
    expect([textOf(first), textOf(second)]).toEqual(['answer 1', 'answer 1'])
    expect([replayed(first), replayed(second)]).toEqual([null, 'true'])
    expect((JSON.parse(second.text) as { id: unknown }).id).toBe('two')
    expect(agent.asked).toHaveLength(1)
    expect(textOf(await host.post(DURABLE, send('hello', 'm2'), V10))).toBe('answer 2')
  })

  test('once - the header keys a request to any agent, and without it each request runs', async () => {
    const { host, agent } = await openDurable(counting())
    const headers = { ...V10, 'idempotency-key': 'order-7' }
    const answers = [
      await host.post(PLAIN, send('hello', 'm1'), headers),
      await host.post(PLAIN, send('hello', 'm2'), headers),
      await host.post(PLAIN, send('hello', 'm1'), V10),
      await host.post(PLAIN, send('hello', 'm1'), V10),
    ]
    expect(answers.map(textOf)).toEqual(['answer 1', 'answer 1', 'answer 2', 'answer 3'])
    expect(agent.asked).toHaveLength(3)
  })

  test('once - the dialect and the HTTP+JSON binding take the same header, and a retry may change the binding', async () => {
    const { host, agent } = await openDurable(counting())
    const headers = { 'idempotency-key': 'k' }
    const first = await host.post(PLAIN, send('hello', 'm1'), { ...V10, ...headers })
    const old = await host.post(PLAIN, send03('hello', 'm2'), { 'a2a-version': '0.3', ...headers })
    expect(resultOf(old)).toMatchObject({ kind: 'message', parts: [{ kind: 'text', text: 'answer 1' }] })
    const { params } = send('hello', 'm3') as { params: object }
    const rest = await fetch(`${host.base}/a2a/${PLAIN}/message:send`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(params),
    })
    expect(rest.headers.get('idempotency-replayed')).toBe('true')
    expect(await rest.json()).toEqual(resultOf(first))
    expect(agent.asked).toHaveLength(1)
  })

  test('once - another message with the same key is refused, and the agent does not get it', async () => {
    const { host, agent } = await openDurable(counting())
    await host.post(DURABLE, send('hello', 'm1'), V10)
    const other = await host.post(DURABLE, send('good bye', 'm1'), V10)
    expect(errorOf(other)).toMatchObject({ code: -32602, data: [{ reason: 'IDEMPOTENCY_KEY_REUSED' }] })
    expect(errorOf(other).message).toContain('use a new key for each request')
    const { params } = send('good bye', 'm1') as { params: object }
    const rest = await fetch(`${host.base}/a2a/${DURABLE}/message:send`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(params),
    })
    expect(rest.status).toBe(422)
    expect(agent.asked).toHaveLength(1)
  })

  test.each(['', 'ü', 'a b', 'x'.repeat(256)])('once - the key %j is refused before anything happens', async (key) => {
    const { host, agent } = await openDurable(counting())
    const answer = await host.post(PLAIN, send('hello', 'm1'), {
      ...V10,
      'idempotency-key': encodeURI(key).replaceAll('%20', ' ') || key,
    })
    if (key === 'ü') return
    expect(errorOf(answer)).toMatchObject({ code: -32602, data: [{ reason: 'IDEMPOTENCY_KEY_INVALID' }] })
    expect(errorOf(answer).message).toContain('1 to 255 visible ASCII characters')
    expect(agent.asked).toHaveLength(0)
  })

  test('once - a request that is repeated while the first runs waits for its answer', async () => {
    const go = Promise.withResolvers<void>()
    const answer = counting()
    const { host, agent } = await openDurable(async (asked, response, request) => {
      await go.promise
      answer(asked, response, request)
    })
    const first = host.post(DURABLE, send('hello', 'm1'), V10)
    await agent.reached(1)
    const more = [1, 2, 3].map(() => host.post(DURABLE, send('hello', 'm1'), V10))
    go.resolve()
    const answers = await Promise.all([first, ...more])
    expect(answers.map(textOf)).toEqual(Array.from({ length: 4 }, () => 'answer 1'))
    expect(agent.asked).toHaveLength(1)
  })

  test('once - many requests at the same time are each sent once, also while others wait for the agent', async () => {
    const go = Promise.withResolvers<void>()
    const answer = counting()
    const { host, agent } = await openDurable(async (asked, response, request) => {
      if (asked.body.includes('"slow"')) await go.promise
      answer(asked, response, request)
    })
    const ask = (text: string, count: number) =>
      Array.from({ length: count }, (_, i) => host.post(DURABLE, send(text, `${text}${i}`), V10))
    const slow = ask('slow', 12)
    await agent.reached(12)
    const quick = await Promise.all(ask('quick', 30))
    const again = await Promise.all(ask('quick', 30))
    expect(again.map(textOf)).toEqual(quick.map(textOf))
    expect(new Set(quick.map(textOf)).size).toBe(30)
    go.resolve()
    expect(new Set((await Promise.all(slow)).map(textOf)).size).toBe(12)
    expect(agent.asked).toHaveLength(42)
  })

  test('once - a key of an earlier version has the same digest', () => {
    const part = { text: 'a', metadata: { 10: 'x', 9: 'y', b: [{ d: 1, c: null }], a: 1.5 } }
    const message = { role: 'ROLE_USER', parts: [part], messageId: 'm1' }
    const params = { message, metadata: { z: 1, k: {} } }
    const call = { body: encodeText('{}'), timeoutMs: undefined, protocol: nativeProtocol('1.0'), params }
    expect(digestOfCall(call)).toBe('a42556fd62fadb87895dfc2ea57eff13268aaeed7b4db5cb9f4424e242d46470')
  })

  test('once - a request that certainly was not sent runs when it is repeated', async () => {
    const host = await openGateway()
    const gone = await startAgent(counting())
    await gone.close()
    await registerDurable(host, gone.url)
    const first = await host.post(DURABLE, send('hello', 'm1'), V10)
    expect(errorOf(first)).toMatchObject({
      data: [{ reason: 'AGENT_UNREACHABLE', metadata: { executed: 'false' } }, {}],
    })
    const agent = await startAgent(counting())
    await registerDurable(host, agent.url)
    await until(() => host.registry.get(DURABLE)?.url === agent.url)
    expect(textOf(await host.post(DURABLE, send('hello', 'm1'), V10))).toBe('answer 1')
  })

  test('once - after a broken connection the outcome is unknown, and the request never runs again', async () => {
    const { host, agent } = await openDurable((_asked, response) => response.destroy())
    const first = await host.post(DURABLE, send('hello', 'm1'), V10)
    expect(errorOf(first).data?.[0]?.reason).toBe('AGENT_UNREACHABLE')
    agent.script = counting()
    const second = await host.post(DURABLE, send('hello', 'm1'), V10)
    expect(errorOf(second).data?.[0]?.reason).toBe('OUTCOME_UNKNOWN')
    expect(errorOf(second).message).toContain('it may have run, and it is not sent again')
    expect(agent.asked).toHaveLength(1)
  })

  test('once - a second caller with the same key sees nothing of the first', async () => {
    const authenticator: Authenticator = {
      authenticate: ({ headers: { authorization = '' } }) => ({ clientId: authorization.replace('Bearer ', '') }),
    }
    const { host, agent } = await openDurable(counting(), { authenticator })
    const ask = (caller: string) =>
      host.post(PLAIN, send('hello', 'm1'), { ...V10, 'idempotency-key': 'k', authorization: `Bearer ${caller}` })
    expect([textOf(await ask('alice')), textOf(await ask('bob')), textOf(await ask('alice'))]).toEqual([
      'answer 1',
      'answer 2',
      'answer 1',
    ])
    expect(agent.asked).toHaveLength(2)
  })

  test('once - a stream that is repeated as a call has its task as the answer, and a call its answer as the stream', async () => {
    const { host, agent } = await openDurable((asked, response, request) => {
      if (asked.body.includes('SendMessage"')) {
        counting()(asked, response, request)
        return
      }
      beginStream(response)
      response.write(taskEvent('t1', { task: 'SUBMITTED' }))
      response.write(taskEvent('t1', { artifact: 'one ' }))
      response.write(taskEvent('t1', { artifact: 'two' }))
      response.end(taskEvent('t1', { state: 'COMPLETED' }))
    })
    await host.post(DURABLE, send('hello', 's1', 1, 'SendStreamingMessage'), V10)
    const call = await host.post(DURABLE, send('hello', 's1'), V10)
    expect(resultOf(call)).toMatchObject({
      task: {
        id: 't1',
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ artifactId: 'a', parts: [{ text: 'one ' }, { text: 'two' }] }],
      },
    })
    await host.post(DURABLE, send('hello', 'c1'), V10)
    const stream = await host.post(DURABLE, send('hello', 'c1', 5, 'SendStreamingMessage'), V10)
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    expect(stream.text).toContain('"text":"answer 1"')
    expect(agent.asked).toHaveLength(2)
  })

  test('once - without a key and a durable agent, nothing is written', async () => {
    const { host } = await openDurable(counting())
    await host.post(PLAIN, send('hello', 'm1'), V10)
    const channels = await host.system.channels.list({})
    expect(channels.map(({ name }) => name)).not.toContain('_AGENTS_.run-log')
  })
})

import { connect } from '@signalbox/client'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import { register, startAgent, withResult } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

const one = issuer()
const PULL = { agent_id: 'night-shift', name: 'Night shift', a2a: { pull: true } }
const WITH_TOOLS = { connectors: { mcp: { inboxTools: true } } }

interface Called {
  readonly text: string
  readonly isError: boolean
  readonly structuredContent: Readonly<Record<string, unknown>>
}

async function call(base: string, name: string, args: object, authorization?: string): Promise<Called> {
  const headers = authorization === undefined ? {} : { authorization }
  const { result } = (await rpc(base, 'tools/call', { name, arguments: args }, headers)) as {
    result: Called & { readonly content: readonly { readonly text: string }[] }
  }
  const { content, isError, structuredContent } = result
  return { text: content[0]?.text ?? '', isError, structuredContent }
}

interface Taken {
  readonly receipt: string
  readonly task_id: string
  readonly attempt: number
  readonly text: string
}

async function take(base: string, args: object = {}, authorization?: string): Promise<Taken | undefined> {
  const { text } = await call(base, 'inbox_take', { agent_id: PULL.agent_id, wait_seconds: 20, ...args }, authorization)
  const [taken] = JSON.parse(text) as Taken[]
  return taken
}

function send(base: string, args: object = {}): Promise<Called> {
  return call(base, 'agent_send', { agent_id: PULL.agent_id, message: 'hello', ...args })
}

async function names(base: string): Promise<readonly string[]> {
  const { result } = (await rpc(base, 'tools/list', {})) as { result: { tools: { name: string }[] } }
  return result.tools.map(({ name }) => name)
}

test('M32 - inbox tools - they follow the other tools, and only if a setting asks for them', async () => {
  const [plain, more] = await Promise.all([serve(), serve(WITH_TOOLS)])
  expect(await names(more.http.url)).toEqual([...(await names(plain.http.url)), 'inbox_take', 'inbox_reply'])
})

test('M32 - inbox tools - a model answers the requests of its agent, and asks back', async () => {
  const base = (await serve(WITH_TOOLS)).http.url
  await register(base, PULL)
  expect(await call(base, 'inbox_take', { agent_id: PULL.agent_id, wait_seconds: 0 })).toMatchObject({ text: '[]' })
  // The model was heard a moment ago, so that the call waits for its answer.
  const sent = send(base)
  const taken = await take(base)
  expect(taken).toMatchObject({ attempt: 1, text: 'hello', caller_id: 'anonymous', request: { message: {} } })
  const { receipt, task_id: id } = taken ?? { receipt: '', task_id: '' }
  const reply = (args: object) => call(base, 'inbox_reply', { agent_id: PULL.agent_id, receipt, ...args })
  expect(await reply({ state: 'working', text: 'reading' })).toMatchObject({
    structuredContent: { state: 'working', cancel_requested: false },
  })
  expect(await reply({ state: 'input-required', text: 'Which one?' })).toMatchObject({ isError: false })
  const asked = JSON.parse((await sent).text) as object
  expect(asked).toMatchObject({ id, status: { state: 'input-required', message: { parts: [{ text: 'Which one?' }] } } })
  const message = {
    role: 'user',
    messageId: 'm2',
    kind: 'message',
    taskId: id,
    parts: [{ kind: 'text', text: 'both' }],
  }
  const answer = { agent_id: PULL.agent_id, method: 'message/send', params: { message } }
  const continued = call(base, 'agent_query', answer)
  const next = await take(base)
  expect(next).toMatchObject({ task_id: id, text: 'both' })
  const last = { agent_id: PULL.agent_id, receipt: next?.receipt, text: 'Done.', artifact: 'the report' }
  expect(await call(base, 'inbox_reply', last)).toMatchObject({ text: 'The task is completed.', isError: false })
  expect(JSON.parse((await continued).text)).toMatchObject({
    status: { state: 'completed', message: { parts: [{ text: 'Done.' }] } },
    artifacts: [{ parts: [{ text: 'the report' }] }],
  })
  expect(await call(base, 'inbox_reply', last)).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^RUN_ENDED/),
  })
})

test('M32 - inbox tools - a reply tells the model that the caller has canceled the task', async () => {
  const base = (await serve(WITH_TOOLS)).http.url
  await register(base, PULL)
  const { id } = JSON.parse((await send(base)).text) as { id: string }
  const taken = await take(base)
  await call(base, 'agent_query', { agent_id: PULL.agent_id, method: 'tasks/cancel', params: { id } })
  const working = { agent_id: PULL.agent_id, receipt: taken?.receipt, state: 'working' }
  expect((await call(base, 'inbox_reply', working)).structuredContent).toMatchObject({ cancel_requested: true })
})

test('M32 - inbox tools - a client that leaves while it waits gets no request', async () => {
  const base = (await serve(WITH_TOOLS)).http.url
  await register(base, PULL)
  const leaving = new AbortController()
  const params = { name: 'inbox_take', arguments: { agent_id: PULL.agent_id, wait_seconds: 60 } }
  const waiting = fetch(`${base}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    signal: leaving.signal,
  })
  const lastSeen = async (): Promise<string> => {
    const card = (await (await fetch(`${base}/agents/${PULL.agent_id}`)).json()) as { last_seen: string }
    return card.last_seen
  }
  const registered = await lastSeen()
  await until(async () => (await lastSeen()) > registered)
  leaving.abort()
  await expect(waiting).rejects.toThrow('aborted')
  await send(base, { blocking: false })
  expect(await take(base)).toMatchObject({ attempt: 1, text: 'hello' })
})

test('M32 - inbox tools - only the owner of the agent and an Admin may use its inbox', async () => {
  const base = (await serve({ ...trusting(one), ...WITH_TOOLS })).http.url
  const [owner, other, admin] = await Promise.all([
    one.bearer('owner'),
    one.bearer('other'),
    one.bearer('root', { roles: ['Admin'] }),
  ])
  const registered = await fetch(`${base}/agents/register`, {
    method: 'POST',
    headers: { authorization: owner, 'content-type': 'application/json' },
    body: JSON.stringify(PULL),
  })
  expect(registered.status).toBe(200)
  await call(base, 'agent_send', { agent_id: PULL.agent_id, message: 'hello' }, other)
  for (const [name, args] of [
    ['inbox_take', {}],
    ['inbox_reply', { receipt: 'x' }],
  ] as const) {
    const refused = await call(base, name, { agent_id: PULL.agent_id, ...args }, other)
    expect(refused).toMatchObject({ isError: true, text: expect.stringMatching(/^AGENT_OWNED: /) })
  }
  expect(await call(base, 'inbox_take', { agent_id: 'nobody' }, owner)).toMatchObject({
    text: expect.stringMatching(/^AGENT_NOT_FOUND: /),
  })
  const taken = await take(base, {}, admin)
  expect(taken).toMatchObject({ text: 'hello', caller_id: 'other' })
  const reply = { agent_id: PULL.agent_id, receipt: taken?.receipt, text: 'hi' }
  expect(await call(base, 'inbox_reply', reply, owner)).toMatchObject({ isError: false })
})

test('M32 - inbox tools - an agent without an inbox is refused', async () => {
  const base = (await serve(WITH_TOOLS)).http.url
  const { url } = await startAgent(withResult('x'))
  await register(base, { agent_id: 'push', name: 'Push', url })
  expect(await call(base, 'inbox_take', { agent_id: 'push' })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^INBOX_NOT_FOUND: /),
  })
})

test('agent_send - a durable agent runs a message with one message_id once', async () => {
  const base = (await serve()).http.url
  let runs = 0
  const agent = await startAgent((asked, response) => {
    runs++
    return withResult({ kind: 'message', role: 'agent', messageId: `r${runs}`, parts: [] })(asked, response)
  })
  await register(base, { agent_id: 'once', name: 'Once', url: agent.url, a2a: { durable: true } })
  await register(base, { agent_id: 'often', name: 'Often', url: agent.url })
  const repeat = (agent_id: string, message = 'pay', more: object = {}) =>
    call(base, 'agent_send', { agent_id, message, message_id: 'payment-7', ...more })
  const first = await repeat('once')
  expect(first).toMatchObject({ isError: false, text: expect.stringContaining('"r1"') })
  expect(agent.asked[0]?.params).toMatchObject({ message: { messageId: 'payment-7' } })
  expect(await repeat('once')).toEqual(first)
  expect(await repeat('once', 'pay', { blocking: false })).toMatchObject({ isError: false })
  expect(runs).toBe(1)
  expect(await repeat('once', 'pay twice')).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^MESSAGE_ID_REUSED: /),
  })
  await repeat('often')
  await repeat('often')
  expect(runs).toBe(3)
})

test('agent_send - the answer to a message that was sent without waiting is fetched with its message_id', async () => {
  const base = (await serve()).http.url
  const agent = await startAgent(withResult({ kind: 'message', role: 'agent', messageId: 'r', parts: [] }))
  await register(base, { agent_id: 'once', name: 'Once', url: agent.url, a2a: { durable: true } })
  const args = { agent_id: 'once', message: 'pay', message_id: 'p1' }
  expect((await call(base, 'agent_send', { ...args, blocking: false })).structuredContent).toMatchObject({
    accepted: true,
  })
  expect(JSON.parse((await call(base, 'agent_send', args)).text)).toMatchObject({ messageId: 'r' })
  expect(agent.asked).toHaveLength(1)
})

test('agent_send - a pull agent answers with its submitted task, or with the answer of a worker', async () => {
  const base = (await serve()).http.url
  await register(base, PULL)
  const sent = await send(base, { message_id: 'm1' })
  const { id } = JSON.parse(sent.text) as { id: string }
  expect(JSON.parse(sent.text)).toMatchObject({ kind: 'task', status: { state: 'submitted' } })
  const sb = connect(base)
  onTestFinished(() => sb.close())
  sb.agents.work(PULL.agent_id, ({ text }) => text.toUpperCase())
  const get = { agent_id: PULL.agent_id, method: 'tasks/get', params: { id } }
  await until(async () => (await call(base, 'agent_query', get)).text.includes('"completed"'))
  const done = { status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'HELLO' }] }] }
  expect(JSON.parse((await send(base, { message_id: 'm1' })).text)).toMatchObject({ id, ...done })
  expect(JSON.parse((await send(base)).text)).toMatchObject(done)
})

test('agent_send - an invalid message_id is refused with the allowed form', async () => {
  const base = (await serve()).http.url
  const args = { agent_id: 'x', message: 'x', message_id: 'with space' }
  expect(await rpc(base, 'tools/call', { name: 'agent_send', arguments: args })).toMatchObject({
    error: {
      code: -32602,
      data: { problems: [{ argument: 'message_id', allowed: '1 to 255 visible ASCII characters' }] },
    },
  })
})

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ANONYMOUS } from '@signalbox/broker-core'
import { AuthenticationError } from '@signalbox/http-kit'
import type { Authenticator } from '@signalbox/http-kit'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import { event, openCe } from './ce-server.ts'
import type { CeAnswer } from './ce-server.ts'

async function mcpClient(base: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`)))
  onTestFinished(() => client.close())
  return client
}

test('CE-10, CE-11, CE-22 - requests: an MCP client is answered by a subscriber over /ce/subscribe', async () => {
  const { base, post, subscribe, connector } = await openCe()
  const mcp = await mcpClient(base)
  const commands = await subscribe('commands?channel=lights&client_id=hall')
  const command = mcp.callTool({ name: 'command_send', arguments: { channel: 'lights', body: '{"on":true}' } })
  const frame = await commands.next()
  expect(frame.event).toBe('message')
  const request = JSON.parse(frame.data)
  expect(request).toMatchObject({
    specversion: '1.0',
    source: '/signalbox/commands/lights',
    type: 'signalbox.message',
    subject: 'lights',
    data: { on: true },
    brokerrequestid: expect.stringMatching(/^[0-9a-f-]{36}$/),
    brokerreplychannel: expect.stringContaining(request.brokerrequestid),
    brokerdeadline: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  expect(connector.pendingRequests()).toBe(1)
  expect(await post(`send/response?request_id=${request.brokerrequestid}`, event())).toMatchObject({
    status: 202,
    is_error: false,
    message: 'request answered',
    data: null,
  })
  expect(await command).toMatchObject({ isError: false })

  const queries = await subscribe('queries?channel=prices&group=workers')
  const query = mcp.callTool({
    name: 'query_send',
    arguments: { channel: 'prices', body: 'gold?', metadata: 'm', tags: { a: 'b' } },
  })
  const asked = await queries.nextJson()
  expect(asked).toMatchObject({
    data: 'gold?',
    brokermetadata: 'm',
    brokertags: '{"a":"b"}',
  })
  await post(`send/response?request_id=${asked.brokerrequestid}`, '{"price":12345678901234567890.10}', {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': 'answer',
    'ce-source': '/prices',
    'ce-type': 'price',
  })
  expect(await query).toMatchObject({
    isError: false,
    content: [{ type: 'text', text: '{"price":12345678901234567890.10}' }, { text: expect.stringContaining('ce_id') }],
  })
  expect(connector.pendingRequests()).toBe(0)
})

test('CE-10 - requests: an MCP client sees a rejection as isError and a missing answer as a time-out', async () => {
  const { base, post, subscribe, connector } = await openCe()
  const mcp = await mcpClient(base)
  for (const [type, tool] of [
    ['commands', 'command_send'],
    ['queries', 'query_send'],
  ] as const) {
    const subscriber = await subscribe(`${type}?channel=c`)
    const call = (timeout_seconds: number) =>
      mcp.callTool({ name: tool, arguments: { channel: 'c', body: 'x', timeout_seconds } })
    for (const [data, reason] of [
      [{ data: 'out of stock' }, 'out of stock'],
      [{ data: { why: 1 } }, '{"why":1}'],
      [{}, 'the subscriber gave no reason'],
    ] as const) {
      const rejected = call(10)
      const { brokerrequestid } = await subscriber.nextJson()
      expect(await post(`send/response?request_id=${brokerrequestid}&is_error=true`, event(data))).toMatchObject({
        status: 202,
        message: 'request rejected',
      })
      expect(await rejected).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(reason) }] })
    }
    const silent = call(1)
    const { brokerrequestid } = await subscriber.nextJson()
    expect(await silent).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('REQUEST_TIMEOUT') }],
    })
    expect(connector.pendingRequests()).toBe(0)
    expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 404 })
    subscriber.close()
  }
})

test('CE-10 - requests: send/command is 202 and send/query 200 with the answer as an event', async () => {
  const { post, subscribe } = await openCe()
  const commands = await subscribe('commands?channel=c')
  const command = post('send/command?channel=c', event({ count: 7 }))
  const asked = await commands.next()
  expect(asked.event).toBe('cloudevent')
  const request = JSON.parse(asked.data)
  expect(request).toMatchObject({ ...event(), count: 7 })
  await post(`send/response?request_id=${request.brokerrequestid}`, event())
  expect(await command).toMatchObject({
    status: 202,
    is_error: false,
    message: 'command executed',
    data: { channel: 'c', executed: true },
  })

  const queries = await subscribe('queries?channel=q')
  const query = post('send/query', event({ subject: 'q' }))
  const { brokerrequestid } = await queries.nextJson()
  const answer = `{"specversion":"1.0","id":"a","source":"/s","type":"t","n":1,"data":{"big":12345678901234567890}}`
  await post(`send/response?request_id=${brokerrequestid}`, answer, { 'content-type': 'application/cloudevents+json' })
  const { status, text, data } = await query
  expect(status).toBe(200)
  expect(data).toMatchObject({ id: 'a', n: 1 })
  expect(text).toContain(`"data":${answer}`)

  const plain = post('send/query', event({ subject: 'p' }))
  const server = await subscribe('queries?channel=p')
  const { brokerrequestid: id } = await server.nextJson()
  await post(`send/response?request_id=${id}`, new Uint8Array([255, 0]), {
    'content-type': 'application/octet-stream',
    'ce-specversion': '1.0',
    'ce-id': '1',
    'ce-source': '/s',
    'ce-type': 't',
  })
  expect((await plain).data).toMatchObject({ data_base64: '/wA=', datacontenttype: 'application/octet-stream' })

  const rejected = post('send/query', event({ subject: 'q' }))
  const again = await queries.nextJson()
  await post(`send/response?request_id=${again.brokerrequestid}&is_error=true`, event({ data: 'no' }))
  expect(await rejected).toMatchObject({
    status: 200,
    is_error: true,
    message: 'rejected by the subscriber: no',
    data: { channel: 'q', executed: false, error: 'no' },
  })
})

test('CE-10 - requests: no subscriber, or no answer, is 503 after the time-out', async () => {
  const { post, subscribe } = await openCe({ timeoutSeconds: 0.3 })
  expect(await post('send/command?channel=nobody', event())).toMatchObject({
    status: 503,
    is_error: true,
    data: { code: 'NO_SUBSCRIBER' },
  })
  await subscribe('queries?channel=silent')
  expect(await post('send/query?channel=silent', event())).toMatchObject({
    status: 503,
    data: { code: 'REQUEST_TIMEOUT', timeoutMs: 300 },
  })
  expect(await post('send/query?channel=silent&timeout=1', event())).toMatchObject({ data: { timeoutMs: 1000 } })
})

test('CE-11 - responses: once only; late or unknown is 404 with a clear text', async () => {
  const { post, subscribe } = await openCe()
  const stream = await subscribe('commands?channel=c')
  const command = post('send/command?channel=c', event())
  const { brokerrequestid } = await stream.nextJson()
  const answers = await Promise.all([1, 2, 3].map(() => post(`send/response?request_id=${brokerrequestid}`, event())))
  expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([202, 404, 404])
  expect(await command).toMatchObject({ status: 202 })
  for (const id of [brokerrequestid, 'unknown', '00000000-0000-0000-0000-000000000000']) {
    expect(await post(`send/response?request_id=${id}`, event())).toMatchObject({
      status: 404,
      is_error: true,
      message: expect.stringMatching(/^no request with this request_id waits for your answer/),
      data: { code: 'REQUEST_UNKNOWN' },
    })
  }
})

function as(name: string): Record<string, string> {
  return { authorization: `Bearer ${name}` }
}

/** Whoever says its name is believed. */
const byName: Authenticator = {
  authenticate({ headers }) {
    const name = headers.authorization?.replace('Bearer ', '')
    if (!name) throw new AuthenticationError('no name')
    return { clientId: name }
  },
}

test('CE-11 - responses: only the principal that received the request may answer; for others it does not exist', async () => {
  const { post, subscribe } = await openCe({ authenticator: byName })
  const stream = await subscribe('commands?channel=c', as('alice'))
  const command = post('send/command?channel=c', event(), as('carol'))
  const { brokerrequestid } = await stream.nextJson()
  const foreign = await post(`send/response?request_id=${brokerrequestid}`, event(), as('bob'))
  const unknown = await post('send/response?request_id=nothing', event(), as('bob'))
  expect(foreign.status).toBe(404)
  expect(foreign.text).toBe(unknown.text)
  expect(await post(`send/response?request_id=${brokerrequestid}`, event(), as('carol'))).toMatchObject({ status: 404 })
  expect(await post(`send/response?request_id=${brokerrequestid}`, event(), as('alice'))).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202, is_error: false })
})

test('CE-11, CE-18 - requests: no wait remains when the requester or the subscriber disconnects', async () => {
  const { base, post, subscribe, connector, user } = await openCe({ answerGraceMs: 0 })
  const stream = await subscribe('queries?channel=q')
  const aborter = new AbortController()
  const asked = fetch(`${base}/ce/send/query?channel=q`, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json' },
    body: JSON.stringify(event()),
    signal: aborter.signal,
  })
  const { brokerrequestid } = await stream.nextJson()
  expect(connector.pendingRequests()).toBe(1)
  aborter.abort()
  await expect(asked).rejects.toThrow('aborted')
  await until(() => connector.pendingRequests() === 0)
  expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 404 })

  const left = post('send/query?channel=q', event())
  const { brokerrequestid: second } = await stream.nextJson()
  stream.close()
  expect(await left).toMatchObject({ status: 200, is_error: true, message: expect.stringContaining('disconnected') })
  expect(connector.pendingRequests()).toBe(0)
  expect(await post(`send/response?request_id=${second}`, event())).toMatchObject({ status: 404 })
  await until(async () => (await user.channels.info('queries', 'q')).subscribers === 0)
})

test('CE-11 - requests: requests in flight at shutdown can still be answered', async () => {
  const { post, subscribe, connector } = await openCe()
  const stream = await subscribe('commands?channel=c')
  const command = post('send/command?channel=c', event())
  const { brokerrequestid } = await stream.nextJson()
  const closed = connector.close(10_000)
  expect(await post('send/event?channel=c', event())).toMatchObject({ status: 503, data: { code: 'SHUTTING_DOWN' } })
  expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202, is_error: false })
  await closed
  await stream.ended
  expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 503 })
})

test('CE-17 - requests: a subscriber that does not read gets no more requests than may wait for it', async () => {
  const { post, subscribe, connector } = await openCe({ maxBufferedBytes: 65_536, answerGraceMs: 0 })
  const stream = await subscribe('commands?channel=c')
  stream.pause()
  const body = event({ data: 'x'.repeat(500_000) })
  const rejected: CeAnswer[] = []
  const others: Promise<unknown>[] = []
  while (rejected.length === 0) {
    const sent = post('send/command?channel=c&timeout=20', body)
    const handedOver = connector.pendingRequests()
    others.push(sent.then((answer) => answer.message.includes('too slow') && rejected.push(answer)))
    await until(() => rejected.length > 0 || connector.pendingRequests() > handedOver)
  }
  expect(rejected[0]).toMatchObject({ status: 202, is_error: true, data: { executed: false } })
  stream.close()
  await Promise.all(others)
  expect(connector.pendingRequests()).toBe(0)
})

test('CE-11 - requests: one member of each group gets it, and the first answer counts', async () => {
  const { post, subscribe, broker } = await openCe()
  const members = [await subscribe('commands?channel=c&group=a'), await subscribe('commands?channel=c&group=a')]
  for (let i = 0; i < 4; i++) {
    const command = broker.as(ANONYMOUS).commands.send('c', { body: new Uint8Array(0) }, { timeoutMs: 20_000 })
    const { brokerrequestid } = await members[i % 2]!.nextJson()
    await post(`send/response?request_id=${brokerrequestid}`, event())
    expect((await command).executed).toBe(true)
  }
  expect(members.map(({ waiting }) => waiting.length)).toEqual([0, 0])
})

test('CE-15 - streams: a stream with a command or query in flight is not idle', async () => {
  const { post, subscribe } = await openCe({ maxSseIdleSeconds: 1 })
  const stream = await subscribe('commands?channel=c')
  const command = post('send/command?channel=c', event())
  const { brokerrequestid } = await stream.nextJson()
  await new Promise((resolve) => setTimeout(resolve, 1_300))
  expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202, is_error: false })
  await stream.ended
})

test('CE-11 - late answers: an answer shortly after its stream closed is accepted once', async () => {
  const { post, subscribe, connector } = await openCe()
  const stream = await subscribe('queries?channel=q')
  const query = post('send/query?channel=q', event())
  const { brokerrequestid } = await stream.nextJson()
  stream.close()
  await until(() => connector.openStreams() === 0)
  const answer = `send/response?request_id=${brokerrequestid}`
  expect(await post(answer, event({ data: { late: true } }))).toMatchObject({ status: 202 })
  expect(await query).toMatchObject({ status: 200, is_error: false, data: { data: { late: true } } })
  expect(connector.pendingRequests()).toBe(0)
  expect(await post(answer, event())).toMatchObject({ status: 404 })
})

test('CE-11 - late answers: after that time the requester gets the error that its subscriber went away', async () => {
  const { post, subscribe, connector } = await openCe({ answerGraceMs: 100 })
  const stream = await subscribe('commands?channel=c')
  const command = post('send/command?channel=c', event())
  const { brokerrequestid } = await stream.nextJson()
  stream.close()
  expect(await command).toMatchObject({ status: 202, is_error: true, message: expect.stringContaining('disconnected') })
  expect(connector.pendingRequests()).toBe(0)
  expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 404 })
})

test('CE-11 - late answers: a request that its subscriber never took is rejected at once', async () => {
  const { post, subscribe, connector } = await openCe({ maxBufferedBytes: 40_000_000 })
  const stream = await subscribe('commands?channel=c')
  stream.pause()
  // More than sockets buffer: the server never gets to write the second command.
  const first = post('send/command?channel=c', event({ data: 'x'.repeat(9_000_000) }))
  await until(() => connector.pendingRequests() === 1)
  const second = post('send/command?channel=c', event())
  await until(() => connector.pendingRequests() === 2)
  stream.close()
  expect(await second).toMatchObject({
    is_error: true,
    message: expect.stringContaining('before it received the command'),
  })
  expect(connector.pendingRequests()).toBe(1)
  const closed = connector.close(0)
  expect(await first).toMatchObject({ is_error: true })
  await closed
  expect(connector.pendingRequests()).toBe(0)
})

test('CE-11 - late answers: a shutdown does not wait for them', async () => {
  const { subscribe, connector, user } = await openCe()
  const stream = await subscribe('commands?channel=c')
  const command = user.commands.send('c', { body: new Uint8Array(0) }, { timeoutMs: 20_000 })
  await stream.nextJson()
  stream.close()
  await until(() => connector.openStreams() === 0)
  await connector.close(100)
  expect(await command).toMatchObject({ executed: false, error: expect.stringContaining('shut down') })
})

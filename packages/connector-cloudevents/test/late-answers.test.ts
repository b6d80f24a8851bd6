import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { event, openCe } from './ce-server.ts'

test('CE-15 - streams: a command or query under way keeps its stream from being idle', async () => {
  const { post, subscribe } = await openCe({ maxSseIdleSeconds: 1 })
  const stream = await subscribe('commands?channel=c')
  const command = post('send/command?channel=c', event())
  const { brokerrequestid } = await stream.nextJson()
  await new Promise((resolve) => setTimeout(resolve, 1_300))
  expect(await post(`send/response?request_id=${brokerrequestid}`, event())).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202, is_error: false })
  await stream.ended
})

test('CE-11 - late answers: one that comes soon after its subscriber closed the stream is taken, once', async () => {
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
  const body = event({ data: 'x'.repeat(2_000_000) })
  const commands = Array.from({ length: 12 }, () => post('send/command?channel=c', body))
  await until(() => connector.pendingRequests() === 12)
  stream.close()
  expect(await Promise.race(commands)).toMatchObject({
    is_error: true,
    message: expect.stringContaining('before it received the command'),
  })
  expect(connector.pendingRequests()).toBeGreaterThan(0)
  const closed = connector.close(0)
  expect((await Promise.all(commands)).every(({ is_error }) => is_error)).toBe(true)
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
